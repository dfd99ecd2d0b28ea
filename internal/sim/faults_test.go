package sim

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// asAgent connects with the agent's certificate, through the gate.
func asAgent(t *testing.T, r *Running) *clientv3.Client {
	t.Helper()
	c, err := r.etcd.dialAs(testContext(t), r.Endpoint(), r.etcd.reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// read waits until the server answers, and returns what the agent may read of a
// resource.
func read(t *testing.T, r *Running, c *clientv3.Client, resource wire.Resource) (map[string]string, *clientv3.GetResponse) {
	t.Helper()
	ctx := testContext(t)
	for {
		resp, err := c.Get(ctx, resource.Prefix(r.c.Name, r.c.Mode == Cached), clientv3.WithPrefix())
		if err != nil {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			continue // the connection was cut
		}
		out := map[string]string{}
		for _, kv := range resp.Kvs {
			out[string(kv.Key)] = string(kv.Value)
		}
		return out, resp
	}
}

// of picks the keys of a resource.
func of(r *Running, resource wire.Resource) map[string]string {
	all := r.Contents()
	maps.DeleteFunc(all, func(key, _ string) bool {
		return !strings.HasPrefix(key, resource.Prefix(r.c.Name, r.c.Mode == Cached))
	})
	return all
}

// checkEqual compares etcd with what the simulator believes that it holds.
func checkEqual(t *testing.T, r *Running) {
	t.Helper()
	got := map[string]string{}
	for key, e := range readAll(t, r.Client()) {
		if !announced(key) {
			got[key] = e.value
		}
	}
	if diff := cmp.Diff(r.Contents(), got); diff != "" {
		t.Errorf("etcd differs from what the simulator believes (-simulator +etcd):\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefused checks that something was refused, and that the reason says why.
func wantRefused(t *testing.T, err error, usage bool, reason string) {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Usage != usage || !strings.Contains(refused.Reason, reason) {
		t.Errorf("refused with %v (usage %t), want %q", err, usage, reason)
	}
}

func TestKilledServerRefusesAndComesBackWithItsData(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{})
	ctx := testContext(t)
	want, id := of(r, wire.Nodes), r.etcd.id
	endpoint := r.Endpoint()
	agent := asAgent(t, r)
	read(t, r, agent, wire.Nodes)
	must(t, r.Kill())
	if _, err := net.Dial("tcp", r.etcd.gate.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection to a killed server: %v", err)
	}
	wantRefused(t, r.Kill(), false, "killed already")
	wantRefused(t, r.Freeze(0), false, "start it first")
	wantRefused(t, r.Put(ctx, "k", nil), false, "start it first")
	if n, err := r.changeIfUp(ctx, 10); n != 0 || err != nil {
		t.Errorf("a killed cluster changed: %d, %v", n, err)
	}
	if s, err := r.State(ctx); err != nil || s.State != "killed" || s.Keys != nil {
		t.Errorf("state %+v, %v", s, err)
	}
	must(t, r.Start(ctx))
	wantRefused(t, r.Start(ctx), false, "runs already")
	if got, _ := read(t, r, agent, wire.Nodes); cmp.Diff(want, got) != "" {
		t.Errorf("the nodes differ:\n%s", cmp.Diff(want, got))
	}
	must(t, r.Restart(ctx))
	if r.etcd.id != id || r.Endpoint() != endpoint {
		t.Errorf("another etcd: %x at %s", r.etcd.id, r.Endpoint())
	}
	if _, err := r.Churn(ctx, 50); err != nil {
		t.Error(err)
	}
	checkContents(t, r)
}

func TestFrozenServerSaysNothingUntilTheThaw(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{})
	agent := asAgent(t, r)
	read(t, r, agent, wire.Nodes)
	wantRefused(t, r.Thaw(), false, "not frozen")
	must(t, r.Freeze(0))
	wantRefused(t, r.Freeze(0), false, "frozen already")
	wantRefused(t, r.Freeze(-time.Second), true, "negative")
	if s, err := r.State(testContext(t)); err != nil || s.State != "frozen" {
		t.Errorf("state %+v, %v", s, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := agent.Get(ctx, wire.HeartbeatKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server answered: %v", err)
	}
	if _, err := r.Churn(testContext(t), 20); err != nil {
		t.Error(err)
	}
	must(t, r.Thaw())
	if got, _ := read(t, r, agent, wire.IPs); cmp.Diff(of(r, wire.IPs), got) != "" {
		t.Errorf("after the thaw (-simulator +etcd):\n%s", cmp.Diff(of(r, wire.IPs), got))
	}
}

func TestFrozenServerThawsByItself(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{Plain: true})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	must(t, r.Freeze(0))
	must(t, r.Freeze(50*time.Millisecond)) // a time may be set later
	read(t, r, asAgent(t, r), wire.Nodes)  // waits for the thaw
	must(t, r.Freeze(time.Hour))
	if s, err := r.State(ctx); err != nil || s.ThawAt == nil {
		t.Errorf("state %+v, %v", s, err)
	}
	must(t, r.Kill()) // ends the freeze too, and Run goes on
	must(t, r.Start(ctx))
	read(t, r, asAgent(t, r), wire.Nodes)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

func TestReplacedServerIsAnotherWithTheSameData(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{})
	ctx := testContext(t)
	agent := asAgent(t, r)
	must(t, r.Put(ctx, "cilium/state/nodes/v1/cluster2/extra", []byte("x")))
	want, before := read(t, r, agent, wire.Nodes)
	old := r.etcd.config.DataDir
	must(t, r.Replace(ctx))
	got, after := read(t, r, agent, wire.Nodes)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the nodes differ:\n%s", diff)
	}
	if before.Header.ClusterId == after.Header.ClusterId || before.Header.Revision == after.Header.Revision {
		t.Errorf("the same etcd: %v and %v", before.Header, after.Header)
	}
	if exists(old) {
		t.Error("the data of the server before are left")
	}
	if _, err := agent.Put(ctx, wire.HeartbeatKey, "x"); err == nil {
		t.Error("the agent may write to the new server")
	}
	if _, err := r.Churn(ctx, 100); err != nil {
		t.Error(err)
	}
	checkEqual(t, r)
	if _, err := r.Mend(ctx); err != nil {
		t.Error(err)
	}
	checkContents(t, r)
}

func TestEmptyServers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		empty  func(*Running, context.Context) error
		sameID bool
	}{
		"replaced": {(*Running).ReplaceEmpty, false},
		"wiped":    {(*Running).Wipe, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := loadCluster(t, Default("cluster2", 2), Options{})
			ctx := testContext(t)
			before := len(readAll(t, r.Client()))
			id := r.etcd.id
			must(t, tc.empty(r, ctx))
			_, resp := read(t, r, asAgent(t, r), wire.Nodes)
			if (resp.Header.ClusterId == id) != tc.sameID || resp.Header.Revision != 1 {
				t.Errorf("etcd cluster ID was %x, now %v", id, resp.Header)
			}
			if n, err := r.Churn(ctx, 10); n != 0 || err != nil {
				t.Errorf("an empty cluster changed: %d, %v", n, err)
			}
			must(t, r.etcd.heartbeat(ctx, time.Now()))
			if got := readAll(t, r.Client()); len(got) > 0 || len(r.Contents()) > 0 {
				t.Errorf("%d keys in an empty server, %d believed", len(got), len(r.Contents()))
			}
			must(t, r.Put(ctx, "some key", nil))
			checkEqual(t, r)
			if n, err := r.Mend(ctx); err != nil || n < before-1 {
				t.Errorf("%d keys mended: %v", n, err)
			}
			if after := checkContents(t, r); len(after) != before {
				t.Errorf("%d keys after mending, there were %d", len(after), before)
			}
		})
	}
}

func TestCompactedHistoryIsGone(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{Plain: true})
	rev, err := r.Compact(testContext(t))
	must(t, err)
	if _, err := r.Client().Get(testContext(t), "k", clientv3.WithRev(rev-1)); err == nil {
		t.Error("a compacted revision can be read")
	}
}

func TestHeartbeatStopsAndBeginsAgain(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{Plain: true})
	ctx := testContext(t)
	revision := func() int64 {
		resp, err := r.Client().Get(ctx, wire.HeartbeatKey)
		if err != nil || resp.Count != 1 {
			t.Fatalf("%v %v", resp, err)
		}
		return resp.Kvs[0].ModRevision
	}
	wantRefused(t, r.SetHeartbeat(ctx, true), false, "on already")
	must(t, r.SetHeartbeat(ctx, false))
	before := revision()
	must(t, r.etcd.heartbeat(ctx, time.Now()))
	if revision() != before {
		t.Error("the heartbeat goes on")
	}
	must(t, r.SetHeartbeat(ctx, true))
	if revision() == before {
		t.Error("the heartbeat does not begin again at once")
	}
	must(t, r.Put(ctx, wire.HeartbeatKey, []byte("x")))
	if _, err := r.Mend(ctx); err != nil {
		t.Error(err)
	}
	if got := readAll(t, r.Client())[wire.HeartbeatKey].value; got == "x" {
		t.Error("a heartbeat by hand outlives the mending")
	}
}

func TestPutAndDelete(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{Plain: true})
	ctx := testContext(t)
	before := readAll(t, r.Client())
	key := slices.Min(slices.Collect(maps.Keys(of(r, wire.Nodes))))
	must(t, r.Put(ctx, "new", []byte("1")))
	must(t, r.Put(ctx, "new", []byte("2")))
	must(t, r.Put(ctx, key, []byte("3")))
	must(t, r.Delete(ctx, wire.SyncedKey("cluster2", wire.IPs, false)))
	checkEqual(t, r)
	if got := r.Contents(); got["new"] != "2" || got[key] != "3" {
		t.Errorf("contents say %q and %q", got["new"], got[key])
	}
	must(t, r.Delete(ctx, key))
	checkEqual(t, r)
	wantRefused(t, r.Delete(ctx, key), false, "has no key "+key)
	wantRefused(t, r.Put(ctx, "", nil), true, "empty")
	if _, err := r.Churn(ctx, 500); err != nil { // may write the node again
		t.Error(err)
	}
	checkEqual(t, r)
	if _, err := r.Mend(ctx); err != nil {
		t.Error(err)
	}
	after := checkContents(t, r)
	if _, ok := after["new"]; ok || after[wire.SyncedKey("cluster2", wire.IPs, false)] == (kv{}) || after[key].value == "" {
		t.Errorf("not mended: %d keys, there were %d", len(after), len(before))
	}
}

func TestMalformedValuesAreRejectedByReaders(t *testing.T) {
	t.Parallel()
	c := Default("cluster2", 2)
	c.ServiceExports = true
	r := loadCluster(t, c, Options{Plain: true})
	ctx := testContext(t)
	layout, _ := wire.NewLayout(255)
	e := wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 3, Layout: layout}
	decode := map[string]func(string, []byte) error{
		"nodes":          func(n string, v []byte) error { _, err := wire.DecodeNode(n, v, e); return err },
		"services":       func(n string, v []byte) error { _, err := wire.DecodeService(n, v, e); return err },
		"endpointslices": func(n string, v []byte) error { _, err := wire.DecodeEndpointSlice(n, v, e); return err },
		"serviceexports": func(n string, v []byte) error { _, err := wire.DecodeServiceExport(n, v, e); return err },
		"identities":     func(n string, v []byte) error { _, err := wire.DecodeIdentity(n, v, e); return err },
		"ips":            func(n string, v []byte) error { _, err := wire.DecodeIP(n, v, e); return err },
		"config":         func(_ string, v []byte) error { _, err := wire.DecodeClusterConfig(v); return err },
	}
	seen := map[string]bool{}
	for _, kind := range Kinds() {
		before := r.Contents()
		key, err := r.Malform(ctx, kind)
		must(t, err)
		name := strings.TrimPrefix(key, wire.Resource(kind).Prefix("cluster2", false))
		if err := decode[kind](name, []byte(before[key])); err != nil {
			t.Errorf("%s: %s was not right before: %v", kind, key, err)
		}
		if err := decode[kind](name, []byte(r.Contents()[key])); err == nil {
			t.Errorf("%s: the value of %s is accepted", kind, key)
		}
		seen[key] = true
	}
	again, err := r.Malform(ctx, "nodes")
	if err != nil || seen[again] {
		t.Errorf("malformed %s twice: %v", again, err)
	}
	checkEqual(t, r)
	_, err = r.Malform(ctx, "config")
	wantRefused(t, err, false, "cluster-config/cluster2")
	_, err = r.Malform(ctx, "pods")
	wantRefused(t, err, true, "config, nodes, services")
	if n, err := r.Mend(ctx); n != len(Kinds())+1 || err != nil {
		t.Errorf("%d keys mended: %v", n, err)
	}
	checkContents(t, r)
}

func TestConfigurationChanges(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{Plain: true})
	ctx := testContext(t)
	config := func() wire.ClusterConfig {
		t.Helper()
		checkEqual(t, r)
		cfg, err := wire.DecodeClusterConfig([]byte(r.Contents()[wire.ClusterConfigKey("cluster2")]))
		must(t, err)
		return cfg
	}
	for name, tc := range map[string]struct {
		change ConfigChange
		want   string
	}{
		"nothing":            {ConfigChange{}, "--delete alone"},
		"delete and more":    {ConfigChange{ID: 3, Delete: true}, "--delete alone"},
		"ID out of range":    {ConfigChange{ID: 256}, "1..255"},
		"unknown capability": {ConfigChange{Capabilities: map[string]string{"flying": "true"}}, "there are syncedCanaries"},
		"wrong type":         {ConfigChange{Capabilities: map[string]string{"cached": "maybe"}}, "cached=maybe"},
	} {
		err := r.Configure(ctx, tc.change)
		wantRefused(t, err, true, tc.want)
		if cfg := config(); cfg.ID != 2 || !cfg.Capabilities.SyncedCanaries {
			t.Errorf("%s: changed to %+v", name, cfg)
		}
	}
	must(t, r.Configure(ctx, ConfigChange{Capabilities: map[string]string{"syncedCanaries": "false", "endpointSlicesExportMode": "x", "serviceExportsEnabled": "null"}}))
	if c := config().Capabilities; c.SyncedCanaries || c.EndpointSlicesExportMode != "x" || c.ServiceExportsEnabled != nil || c.MaxConnectedClusters != 255 {
		t.Errorf("capabilities are %+v", c)
	}
	must(t, r.Configure(ctx, ConfigChange{Delete: true}))
	if _, ok := readAll(t, r.Client())[wire.ClusterConfigKey("cluster2")]; ok {
		t.Error("the configuration is not deleted")
	}
	must(t, r.Configure(ctx, ConfigChange{Capabilities: map[string]string{"maxConnectedClusters": "511"}}))
	if c := config().Capabilities; !c.SyncedCanaries || c.MaxConnectedClusters != 511 {
		t.Errorf("capabilities are %+v", c)
	}
}

func TestNewClusterIDIsEverywhere(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Remote, Cached, Local} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			c := Default("cluster2", 2)
			c.Mode = mode
			r := loadCluster(t, c, Options{Plain: true})
			ctx := testContext(t)
			if _, err := r.Churn(ctx, 500); err != nil { // with identities of no pod
				t.Fatal(err)
			}
			before := readAll(t, r.Client())
			must(t, r.Configure(ctx, ConfigChange{ID: 9}))
			if r.Cluster().ID != 9 {
				t.Errorf("the cluster says that it is %d", r.Cluster().ID)
			}
			checkEqual(t, r)
			if mode == Remote {
				checkContents(t, r) // decodes with the ID
			}
			after := readAll(t, r.Client())
			if len(after) != len(before) {
				t.Errorf("%d keys, there were %d", len(after), len(before))
			}
			for key := range after {
				if _, ok := before[key]; ok == strings.Contains(key, "/identities/v1/") && !announced(key) {
					t.Errorf("%s: there before %t", key, ok)
				}
			}
			if _, err := r.Churn(ctx, 500); err != nil {
				t.Fatal(err)
			}
			checkEqual(t, r)
			must(t, r.Configure(ctx, ConfigChange{ID: 2, Capabilities: map[string]string{"syncedCanaries": "true"}}))
			checkEqual(t, r)
		})
	}
}

func TestChurnRateChanges(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{Plain: true})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	watch := r.Client().Watch(ctx, wire.StatePrefix, clientv3.WithPrefix())
	must(t, r.SetChurn(500))
	for events := 0; events < 50; {
		resp, ok := <-watch
		if !ok {
			t.Fatal("the watch ended")
		}
		events += len(resp.Events)
	}
	wantRefused(t, r.SetChurn(-1), true, "-1")
	must(t, r.SetChurn(0))
	if s, err := r.State(ctx); err != nil || s.Churn != 0 || r.Changes() == 0 {
		t.Errorf("state %+v, %d changes, %v", s, r.Changes(), err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	checkContents(t, r)
}

func TestMeshFaults(t *testing.T) {
	t.Parallel()
	m := openMesh(t, MeshOptions{Plain: true}, Default("cluster1", 1), Default("cluster2", 2))
	ctx := testContext(t)
	must(t, m.Load(ctx, nil))
	one, err := m.Cluster("cluster1")
	must(t, err)
	two, err := m.Cluster("cluster2")
	must(t, err)
	_, err = m.Cluster("cluster3")
	wantRefused(t, err, false, "there are cluster1, cluster2")

	file := filepath.Join(m.Dir(), "cluster1")
	wantRefused(t, m.Add(one), false, file)
	must(t, m.Remove(one))
	wantRefused(t, m.Remove(one), false, file)
	if states, err := m.State(ctx, m.Clusters()...); err != nil || states[0].ClientFile != "" || states[1].ClientFile == "" || exists(file) {
		t.Errorf("states %+v, %v", states, err)
	}
	must(t, m.Add(one))
	if !exists(file) {
		t.Error("the file is not there again")
	}

	addr := two.Sample().Pod
	key, other, err := m.Claim(ctx, one, addr)
	if err != nil || other != "cluster2" || !strings.HasSuffix(key, addr.String()) {
		t.Errorf("claimed %s of %s: %v", key, other, err)
	}
	layout, _ := wire.NewLayout(255)
	_, err = wire.DecodeIP(addr.String(), []byte(one.Contents()[key]), wire.Expect{Cluster: "cluster1", ClusterID: 1, LocalID: 3, Layout: layout})
	if err != nil {
		t.Errorf("the claim is not accepted: %v", err)
	}
	checkEqual(t, one)
	_, _, err = m.Claim(ctx, one, addr)
	wantRefused(t, err, false, "already")
	_, _, err = m.Claim(ctx, one, netip.MustParseAddr("192.0.2.1"))
	wantRefused(t, err, false, addr.String())
	if _, err := one.Mend(ctx); err != nil {
		t.Error(err)
	}
	checkContents(t, one)
}
