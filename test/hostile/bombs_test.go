package hostile

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// bomb is data that cost an agent much more than its remote.
type bomb struct {
	name string
	rule *rule // of the server, nil for an honest one whose keys are the bomb
	keys func(c *cluster) map[string][]byte
}

// fill writes the keys of the bomb.
func (b bomb) fill(c *cluster, s *server) {
	if b.keys != nil {
		for k, v := range b.keys(c) {
			s.put(map[string][]byte{k: v})
		}
	}
}

// lasts gives the agent time to read everything, or to give up: a while longer than the lists of honest clusters take.
func (b bomb) lasts(tb testing.TB, a *agent, c *cluster, s *server) {
	tb.Helper()
	if b.rule != nil {
		a.until("the server to break its rule", func() bool { return s.broken.Load() > 0 })
	}
	began := time.Now()
	a.until("the bomb to be taken in", func() bool {
		return a.failed() || time.Since(began) > 8*time.Second || a.clusters()[c.name].State == "ready" && b.rule == nil && time.Since(began) > 3*time.Second
	})
	if st, ok := a.clusters()[c.name]; ok {
		tb.Logf("%s: %s %s %.300q, %+v", c.name, st.State, st.Code, st.Message, st.Counts)
	}
}

func bombs() []bomb {
	return []bomb{
		{name: "slices of empty endpoints", keys: sliceBombs(5, 8<<3|2)},
		{name: "slices of empty ports", keys: sliceBombs(5, 9<<3|2)},
		{name: "addresses of braces", keys: jsonBombs(wire.IPs, func(c *cluster, i int) (string, string) {
			return c.addr(1000 + i).String(), fmt.Sprintf(`{"IP":%q,"K8sPodName":"%s"}`, c.addr(1000+i), strings.Repeat("{", 1_400_000))
		})},
		{name: "addresses of many ports", keys: jsonBombs(wire.IPs, func(c *cluster, i int) (string, string) {
			return c.addr(1000 + i).String(), fmt.Sprintf(`{"IP":%q,"NamedPorts":[{}%s]}`, c.addr(1000+i), strings.Repeat(",{}", 400_000))
		})},
		{name: "nodes of many addresses", keys: jsonBombs(wire.Nodes, func(c *cluster, i int) (string, string) {
			return fmt.Sprint("n", i), fmt.Sprintf(`{"Name":"n%d","Cluster":%q,"ClusterID":%d,"IPAddresses":[{}%s]}`, i, c.name, c.id, strings.Repeat(",{}", 400_000))
		})},
		{name: "nodes of many labels", keys: jsonBombs(wire.Nodes, func(c *cluster, i int) (string, string) {
			return fmt.Sprint("n", i), fmt.Sprintf(`{"Name":"n%d","Cluster":%q,"ClusterID":%d,"Labels":{%s}}`, i, c.name, c.id, pairs(100_000, `""`))
		})},
		{name: "services of many backends", keys: jsonBombs(wire.Services, func(c *cluster, i int) (string, string) {
			return fmt.Sprint("ns/s", i), fmt.Sprintf(`{"cluster":%q,"clusterID":%d,"namespace":"ns","name":"s%d","shared":true,"backends":{%s}}`, c.name, c.id, i, pairs(100_000, `{}`))
		})},
		{name: "exports of many ports", keys: jsonBombs(wire.ServiceExports, func(c *cluster, i int) (string, string) {
			return fmt.Sprint("ns/s", i), fmt.Sprintf(`{"cluster":%q,"namespace":"ns","name":"s%d","ports":[{}%s]}`, c.name, i, strings.Repeat(",{}", 400_000))
		})},
		{name: "identities of many labels", keys: jsonBombs(wire.Identities, func(c *cluster, i int) (string, string) {
			return fmt.Sprint(c.id<<16 + 5000 + uint32(i)), strings.Repeat("a;", 600_000)
		})},
		{name: "deep JSON", keys: jsonBombs(wire.Nodes, func(_ *cluster, i int) (string, string) {
			return fmt.Sprint("n", i), `{"Labels":` + strings.Repeat(`{"a":`, 200_000)
		})},
		{name: "huge pages", rule: ruleNamed(hugeRules(), "pages of 50 values of 5 MiB")},
		{name: "pages full of entries", rule: ruleNamed(hugeRules(), "a million empty entries in a page")},
		{name: "huge events", rule: ruleNamed(hugeRules(), "events of 256 MiB")},
		{name: "answers full of events", rule: ruleNamed(hugeRules(), "a million empty events in an answer")},
		{name: "a flood of keys", rule: keyFlood()},
		{name: "a flood of events", rule: eventFlood(100)},
		{name: "a flood of events about new keys", rule: eventFlood(0)},
		{name: "a flood of progress", rule: ruleNamed(rules(), "watch: a flood of progress")},
	}
}

func ruleNamed(all []*rule, name string) *rule {
	for _, r := range all {
		if r.name == name {
			return r
		}
	}
	panic("no rule is called " + name)
}

// pairs are the members of a JSON object.
func pairs(n int, value string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%d":%s`, i, value)
	}
	return b.String()
}

// jsonBombs are 20 values of up to 1.5 MiB.
func jsonBombs(r wire.Resource, one func(c *cluster, i int) (name, value string)) func(*cluster) map[string][]byte {
	return func(c *cluster) map[string][]byte {
		all := make(map[string][]byte)
		for i := range 20 {
			name, value := one(c, i)
			all[r.Key(c.name, false, name)] = []byte(value)
		}
		return all
	}
}

// sliceBombs are endpoint slices that unpack to 16 MiB of a field without contents, two bytes each.
func sliceBombs(n int, tag byte) func(*cluster) map[string][]byte {
	return func(c *cluster) map[string][]byte {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // the options are good
		}
		value := z.EncodeAll([]byte(strings.Repeat(string([]byte{tag, 0}), 8*mib-1000)), nil)
		_ = z.Close()
		all := make(map[string][]byte)
		for i := range n {
			all[wire.EndpointSlices.Key(c.name, false, fmt.Sprint("ns/bomb", i))] = value
		}
		return all
	}
}

// keyFlood is a server whose lists never end, in full pages of valid addresses.
func keyFlood() *rule {
	return withoutEnd("a flood of keys", "cilium/state/ip/", 0, func(_ string, n int64) *mvccpb.KeyValue {
		return address(uint32(n), 2) //nolint:gosec // it may begin again
	})
}

// address is an entry for one of 4 billion addresses, in the order of their keys.
func address(n uint32, rev int64) *mvccpb.KeyValue {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], n)
	text := fmt.Sprintf("fd00:ffff:%02x%02x:%02x%02x::1", ip[0], ip[1], ip[2], ip[3])
	return &mvccpb.KeyValue{
		Key: []byte("cilium/state/ip/v1/default/" + text), ModRevision: rev, CreateRevision: rev, Version: 1,
		Value: fmt.Appendf(nil, `{"IP":%q,"ID":%d,"K8sNamespace":"ns","K8sPodName":"pod-%d"}`, text, 11<<16+n%1000, n),
	}
}

// eventFlood sends events as fast as it can, about this many addresses, 0 for always new ones.
func eventFlood(addresses uint32) *rule {
	var next atomic.Uint32
	return &rule{name: "a flood of events", flood: func(ctx context.Context, s *server, w *watched, send func(any) error) error {
		if !strings.HasPrefix(string(w.key), "cilium/state/ip/") {
			return nil
		}
		for rev := w.next; ctx.Err() == nil; {
			a := &pb.WatchResponse{Header: s.header()}
			a.Header.Revision = rev + 1000
			for range 1000 {
				n := next.Add(1)
				if addresses > 0 {
					n %= addresses
				}
				a.Events = append(a.Events, &mvccpb.Event{Kv: address(n, rev)})
				rev++
			}
			if err := send(a); err != nil {
				return err
			}
		}
		return nil
	}}
}
