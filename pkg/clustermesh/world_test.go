package clustermesh

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// world is a mesh that runs on a directory. The remote clusters are etcd servers in processes of their own.
type world struct {
	t    *testing.T
	dir  string
	db   *statedb.DB
	view *Ingest
	mesh *Remotes
	stop func()
}

// own returns the own cluster.
func own() wire.ClusterInfo {
	return wire.ClusterInfo{Name: "own", ID: 250, MaxConnectedClusters: 255}
}

// newView returns a view with tables of its own.
func newView(t testing.TB, ips *ipcache.Cache) (*statedb.DB, *Ingest) {
	t.Helper()
	db := statedb.New()
	tables, err := NewTables(db, ips)
	must(t, err)
	v, err := NewIngest(own(), tables)
	must(t, err)
	return db, v
}

// etcdOf are the options of the sessions with etcd.
func etcdOf(p *Params) *etcd.Options { return p.Engine.(*etcd.Options) }

func newWorld(t *testing.T, change ...func(*Params)) *world {
	t.Helper()
	return newWorldOn(t, nil, change...)
}

// newWorldOn is newWorld with the metrics of the sources.
func newWorldOn(t *testing.T, sources *store.Metrics, change ...func(*Params)) *world {
	t.Helper()
	w := newIdleWorld(t, sources, change...)
	w.start()
	return w
}

// newIdleWorld returns a world that is not started.
func newIdleWorld(t *testing.T, sources *store.Metrics, change ...func(*Params)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.db, w.view = newView(t, ipcache.New(ipcache.Rules{}))
	w.view.NodeDelay = 200 * time.Millisecond
	opts := etcd.DefaultOptions()
	opts.QPS, opts.PageLimit = 0, 50
	opts.Timings.ProbeInterval, opts.Timings.Probe = 150*time.Millisecond, time.Second
	opts.Timings.Connect, opts.Timings.BackoffMax = 5*time.Second, 200*time.Millisecond
	opts.Timings.HeartbeatLimit = time.Hour // most tests write no heartbeat, and may take minutes on a slow machine
	timings := remotecluster.DefaultTimings()
	timings.RetryMin, timings.RetryMax, timings.ConflictRetry = 20*time.Millisecond, 200*time.Millisecond, 50*time.Millisecond
	p := Params{
		Directory: w.dir, Local: own(), SyncTimeout: time.Minute, Consumer: w.view.Consumer(sources),
		Engine: &opts, Timings: timings, ApplyPolicy: w.view.ApplyPolicy, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&p)
	}
	w.mesh = New(p)
	w.mesh.dir.Confirm, w.mesh.dir.Grace = 50*time.Millisecond, time.Hour
	return w
}

func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.mesh.Run(ctx) }()
	w.stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(w.stop)
}

// remote is one remote cluster: its etcd, and its name and ID.
type remote struct {
	w      *world
	name   string
	id     uint32
	cached bool // it is a copy, in an etcd that may have copies of other clusters, too
	etcd   *etcdtest.Process
	kv     *clientv3.Client
	// Instead of etcd, on a simulated clock: the kvstore, and what ends its heartbeat.
	memory *memory.Store
	mute   func()
}

// remote starts a cluster's etcd and fills it, without adding it to the mesh.
func (w *world) remote(name string, id uint32) *remote {
	w.t.Helper()
	r := &remote{w: w, name: name, id: id, etcd: etcdtest.StartProcess(w.t)}
	r.kv = r.etcd.Client(w.t)
	r.fill(0, 120)
	return r
}

func (r *remote) ctx() context.Context {
	return waittest.Context(r.w.t)
}

func (r *remote) put(key string, value []byte) {
	r.w.t.Helper()
	r.write([]object{{key, string(value)}})
}

func (r *remote) delete(key string, opts ...clientv3.OpOption) {
	r.w.t.Helper()
	_, err := r.kv.Delete(r.ctx(), key, opts...)
	must(r.w.t, err)
}

// fill writes the configuration, and the objects i with from <= i < to.
func (r *remote) fill(from, to int) {
	r.configure(wire.Capabilities{MaxConnectedClusters: 255, Cached: r.cached, SyncedCanaries: r.cached})
	var all []object // many at once: with the race detector each request is expensive
	for i := from; i < to; i++ {
		all = append(all, r.objects(i, 1)...)
	}
	for some := range slices.Chunk(all, 100) {
		r.write(some)
	}
	if r.cached {
		for _, res := range wire.Resources() {
			r.put(wire.SyncedKey(r.name, res, true), []byte("now"))
		}
	}
}

func (r *remote) configure(c wire.Capabilities) {
	r.put(wire.ClusterConfigKey(r.name), wire.ClusterConfig{ID: r.id, Capabilities: c}.Encode())
}

// key returns the key of the cluster's entry of a resource.
func (r *remote) key(res wire.Resource, name string) string { return res.Key(r.name, r.cached, name) }

func (r *remote) addr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(r.id), byte(i >> 8), byte(i)})
}

// object writes one object of each kind; n makes it differ from its last version.
func (r *remote) object(i, n int) {
	r.w.t.Helper()
	r.write(r.objects(i, n))
}

// object is a key and its value.
type object struct{ key, value string }

// write writes all of them at once.
func (r *remote) write(all []object) {
	r.w.t.Helper()
	if r.memory != nil {
		var events []kvstore.Event
		for _, o := range all {
			events = append(events, kvstore.Event{KeyValue: kvstore.KeyValue{Key: []byte(o.key), Value: []byte(o.value)}})
		}
		r.memory.Write(events...)
		return
	}
	var ops []clientv3.Op
	for _, o := range all {
		ops = append(ops, clientv3.OpPut(o.key, o.value))
	}
	_, err := r.kv.Txn(r.ctx()).Then(ops...).Commit()
	must(r.w.t, err)
}

func (r *remote) objects(i, n int) []object {
	node := wire.Node{
		Name: fmt.Sprint("node", i), Cluster: r.name, ClusterID: r.id, BootID: fmt.Sprint("boot", n),
		IPAddresses: []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.IPv4(172, byte(r.id), byte(i>>8), byte(i))}},
	}
	service := wire.Service{
		Cluster: r.name, ClusterID: r.id, Namespace: "ns", Name: fmt.Sprint("svc", i), Shared: true,
		Backends: map[string]wire.Ports{r.addr(i).String(): {"http": {Protocol: "TCP", Port: uint16(8000 + n)}}},
	}
	id := r.id<<16 + uint32(i)
	labels := fmt.Sprintf("k8s:app=a%d;k8s:io.cilium.k8s.policy.cluster=%s;", n, r.name)
	pair := wire.IPIdentityPair{IP: net.IP(r.addr(i).AsSlice()), Identity: r.id<<16 + uint32(n), Pod: fmt.Sprint("pod", i), Namespace: "ns"}
	return []object{
		{r.key(wire.Nodes, node.Name), string(node.Encode())},
		{r.key(wire.Services, "ns/"+service.Name), string(service.Encode())},
		{r.key(wire.Identities, fmt.Sprint(id)), labels},
		{r.key(wire.IPs, pair.Name()), string(pair.Encode())},
	}
}

// remove deletes the keys of one object.
func (r *remote) remove(i int) {
	for _, key := range []string{
		r.key(wire.Nodes, fmt.Sprint("node", i)),
		r.key(wire.Services, fmt.Sprint("ns/svc", i)),
		r.key(wire.Identities, fmt.Sprint(r.id<<16+uint32(i))),
		r.key(wire.IPs, r.addr(i).String()),
	} {
		r.delete(key)
	}
}

func (r *remote) join() {
	file := filepath.Join(r.w.dir, r.name)
	if r.memory != nil {
		must(r.w.t, os.WriteFile(file, []byte("endpoints: ["+r.endpoint()+"]\n"), 0o600))
		return
	}
	must(r.w.t, copyFile(r.etcd.ConfigFile(r.w.t), file))
}

// contents are the objects of a cluster, in a form that both etcd and the view can be converted to.
type contents map[string]string

// inEtcd returns the contents of the cluster's etcd, decoded with encoding/json alone.
func (r *remote) inEtcd() contents {
	r.w.t.Helper()
	c := contents{}
	get := func(prefix string, f func(name string, value []byte)) {
		resp, err := r.kv.Get(r.ctx(), prefix, clientv3.WithPrefix())
		must(r.w.t, err)
		for _, kv := range resp.Kvs {
			f(strings.TrimPrefix(string(kv.Key), prefix), kv.Value)
		}
	}
	parse := func(value []byte) (m map[string]any) {
		must(r.w.t, json.Unmarshal(value, &m))
		return m
	}
	nodePrefix, servicePrefix := "cilium/state/nodes/v1/", "cilium/state/services/v1/"
	identityPrefix, ipPrefix := "cilium/state/identities/v1/id/", "cilium/state/ip/v1/default/"
	if r.cached {
		nodePrefix, servicePrefix = "cilium/cache/nodes/v1/", "cilium/cache/services/v1/"
		identityPrefix, ipPrefix = "cilium/cache/identities/v1/"+r.name+"/id/", "cilium/cache/ip/v1/"+r.name+"/"
	}
	get(nodePrefix+r.name+"/", func(name string, value []byte) {
		c["node "+name] = fmt.Sprint(parse(value)["BootID"])
	})
	get(servicePrefix+r.name+"/", func(name string, value []byte) {
		backends := parse(value)["backends"].(map[string]any)
		var text []string
		for ip, ports := range backends {
			text = append(text, fmt.Sprint(ip, " ", ports.(map[string]any)["http"].(map[string]any)["Port"]))
		}
		slices.Sort(text)
		c["service "+name] = strings.Join(text, ", ")
	})
	get(identityPrefix, func(name string, value []byte) {
		c["identity "+name] = string(value)
	})
	get(ipPrefix, func(name string, value []byte) {
		m := parse(value)
		c["ip "+name] = fmt.Sprint(uint32(m["ID"].(float64)), " ", m["K8sPodName"])
	})
	return c
}

// inView returns the cluster's objects in the view, in the same form.
func (r *remote) inView() contents {
	c := contents{}
	txn := r.w.db.ReadTxn()
	for n := range nodes.ByCluster(txn, r.w.view.Nodes.Table(), r.name) {
		c["node "+n.Name] = n.BootID
	}
	for s := range services.ByCluster(txn, r.w.view.Services.Exported(), r.name) {
		var text []string
		for _, b := range s.Backends {
			text = append(text, fmt.Sprint(b.IP, " ", b.Ports[0].Port))
		}
		c["service "+s.FullName()] = strings.Join(text, ", ")
	}
	for id := range identities.ByCluster(txn, r.w.view.Identities.Table(), r.name) {
		c[fmt.Sprint("identity ", id.ID)] = id.Labels.Wire().Encode()
	}
	for e := range r.w.view.IPs.Snapshot().From(netip.Prefix{}) {
		if e.Cluster().Name == r.name && e.Kind() == ipcache.KindHost {
			c["ip "+e.Prefix().Addr().String()] = fmt.Sprint(e.Identity(), " ", e.Pod())
		}
	}
	return c
}

// converges waits until the view equals etcd.
func (r *remote) converges() {
	r.w.t.Helper()
	want := r.inEtcd()
	r.w.until(r.name+" to equal its etcd", func() bool { return maps.Equal(want, r.inView()) }, func() string {
		return cmp.Diff(want, r.inView())
	})
}
