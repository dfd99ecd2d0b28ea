package servers

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// attack is an attack on memory, time, or places, until the context ends. It returns the number of attempts.
type attack struct {
	name string
	run  func(ctx context.Context, w *world) int
}

// attacks returns all attacks.
func attacks() []attack {
	return []attack{
		{"a large service is rewritten", rewrites},
		{"questions for a large service", asksForMuch},
		{"names of types that are not served", namesOfOtherTypes},
		{"long descriptions of clients", longNodes},
		{"assignments with long zones", longZones},
		{"one service in many spellings", spellings},
		{"many ports", manyPorts},
		{"all names", allNames},
		{"all connections", allConnections},
		{"readers that do not read", slowReaders},
	}
}

// TestAttacks runs each attack alone, for the duration of -servers.each.
func TestAttacks(t *testing.T) {
	if *each == 0 {
		t.Skip("by hand: -servers.each=30s")
	}
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			w := newWorld(t)
			w.befriend("xDS asks", w.subscribes)
			ctx, cancel := context.WithTimeout(t.Context(), *each)
			defer cancel()
			w.now.Store(int32(harmless))
			_ = waiting.Sleep(ctx, *each/10)
			w.now.Store(int32(attacked))
			t.Logf("%d times", a.run(ctx, w))
			w.judge(unlimited)
		})
	}
}

// unlimited is for attacks without a harmless client to compare: friends have to be answered, at any speed.
const unlimited = 1e9

// largeService is a service with many backends, as text: the ports of each, and a label that makes each write
// different.
func largeService(c *cluster, name string, backends int, ports, label string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"cluster":%q,"clusterID":%d,"namespace":"ns","name":%q,"shared":true,"frontends":{},"labels":{"v":%q},"selector":{},"backends":{`, c.name, c.id, name, label)
	for i := range backends {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"10.9.%d.%d":%s`, i>>8, i&255, ports)
	}
	b.WriteString("}}")
	return b.Bytes()
}

// rewrites writes one service of 60,000 backends repeatedly, and keeps its etcd small.
func rewrites(ctx context.Context, w *world) (n int) {
	key := w.evil.service("large", 80).Key()
	for ; ctx.Err() == nil && w.agent.alive(); n++ {
		put, err := w.evil.kv.Put(ctx, key, string(largeService(w.evil, "large", 60_000, "null", fmt.Sprint(n))))
		if err == nil && n%50 == 49 {
			_, err = w.evil.kv.Compact(ctx, put.Header.Revision, clientv3.WithCompactPhysical())
		}
		if err != nil && ctx.Err() == nil {
			w.agent.fails(fmt.Sprintf("the attacker cannot write: %v", err))
			return n
		}
	}
	return n
}

// writeMuch writes a service with many backends that have a port.
func (w *world) writeMuch(name string, backends int) {
	key := w.evil.service(name, 80).Key()
	if err := w.evil.write(map[string][]byte{key: largeService(w.evil, name, backends, `{"a":{"Protocol":"TCP","Port":1}}`, "")}); err != nil {
		w.agent.fails(fmt.Sprintf("the attacker cannot write: %v", err))
	}
}

// mostBackends is the maximum number of backends with a port in a value.
const mostBackends = 29_000

// asksForMuch asks for all names of a service with many backends.
func asksForMuch(ctx context.Context, w *world) int {
	w.writeMuch("much", mostBackends)
	var clients sync.WaitGroup
	var asked atomic.Int64
	for range 8 {
		clients.Go(func() { asked.Add(int64(w.asksAll(ctx))) })
	}
	clients.Wait()
	return int(asked.Load())
}

func (w *world) asksAll(ctx context.Context) (n int) {
	client := &dns.Client{Timeout: friendlyTime}
	for ; ctx.Err() == nil && w.agent.alive(); n++ {
		q := new(dns.Msg)
		name := []string{"_a._tcp.much.ns.svc.clusterset.local.", "much.ns.svc.clusterset.local.", "1.0.9.10.in-addr.arpa.", "evil.much.ns.svc.clusterset.local."}[n%4]
		q.SetQuestion(name, []uint16{dns.TypeSRV, dns.TypeSRV, dns.TypePTR, dns.TypeAAAA, dns.TypeSOA, dns.TypeANY, dns.TypeTXT}[n%7])
		client.Net = []string{"udp", "tcp"}[n/28%2]
		_, _, _ = client.ExchangeContext(ctx, q, w.agent.dns) // the friends check whether others are answered
		_ = waiting.Sleep(ctx, 10*time.Millisecond)
	}
	return n
}

// longZones has a service whose backends are each in a different zone with a long name, and an xDS client that follows
// it.
func longZones(ctx context.Context, w *world) (n int) {
	w.writeMuch("wide", mostBackends)
	for first := 0; first < mostBackends && ctx.Err() == nil; first += 100 {
		s := &wire.EndpointSlice{
			Cluster: w.evil.name, ClusterID: w.evil.id, Namespace: "ns", Name: fmt.Sprint("wide-", first), AddressType: wire.AddressTypeIPv4,
			Labels: map[string]string{wire.LabelServiceName: "wide"},
		}
		for i := first; i < min(first+100, mostBackends); i++ {
			zone := fmt.Sprintf("z%05d%s", i, strings.Repeat("z", 57)) // the maximum length of a label's value
			s.Endpoints = append(s.Endpoints, wire.Endpoint{Addresses: []string{fmt.Sprintf("10.9.%d.%d", i>>8, i&255)}, Zone: &zone})
		}
		if err := w.evil.write(map[string][]byte{s.Key(): s.Encode()}); err != nil {
			w.agent.fails(fmt.Sprintf("the attacker cannot write: %v", err))
		}
		n++
	}
	w.read(time.Now())
	f := &friend{name: "xDS of the wide service", now: &w.now}
	err := w.followsName(ctx, f, "ns/wide:a")
	for ctx.Err() == nil && err != nil && strings.Contains(err.Error(), "--xds-max-memory") { // other attackers of this machine may use its share
		_ = waiting.Sleep(ctx, time.Second)
		err = w.followsName(ctx, f, "ns/wide:a")
	}
	if err != nil && ctx.Err() == nil {
		w.agent.fails(fmt.Sprintf("a client that follows a service of many zones: %v", err))
	}
	return n
}

// manyPorts has 300,000 ports of several services, and an Envoy that follows all of them.
func manyPorts(ctx context.Context, w *world) (n int) {
	for i := range 10 {
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"cluster":"evil","clusterID":9,"namespace":"ns","name":"ports%d","shared":true,"backends":{`, i)
		for p := range 30_000 {
			switch { // 500 of each backend
			case p == 0:
				fmt.Fprintf(&b, `"10.9.200.0":{`)
			case p%500 == 0:
				fmt.Fprintf(&b, `},"10.9.200.%d":{`, p/500)
			default:
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"p%d":{"Protocol":"TCP","Port":%d}`, p, p+1)
		}
		b.WriteString("}}}")
		if err := w.evil.write(map[string][]byte{w.evil.service(fmt.Sprint("ports", i), 80).Key(): b.Bytes()}); err != nil {
			w.agent.fails(fmt.Sprintf("the attacker cannot write: %v", err))
		}
	}
	var envoys sync.WaitGroup
	for range 3 {
		envoys.Go(func() { _ = w.takesAll(ctx, &friend{now: &w.now}) }) // it may be refused
	}
	envoys.Wait()
	<-ctx.Done()
	return 300_000
}
