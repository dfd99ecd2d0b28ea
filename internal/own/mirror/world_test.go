package mirror

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/rightstest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// world is a mirror between remote clusters and the own etcd.
type world struct {
	t    *testing.T
	dir  string
	etcd *etcdtest.Process
	log  *slog.Logger
}

func newWorld(t *testing.T, own ...etcdtest.Option) *world {
	t.Helper()
	return &world{t: t, dir: t.TempDir(), etcd: rightstest.StartProcess(t, "own", own...), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// remote runs a cluster.
func (w *world) remote(name string, id uint32, change ...func(*contents.Cluster)) *sim.Running {
	w.t.Helper()
	c := contents.Default(name, id)
	c.Nodes, c.Services, c.Identities, c.Addresses, c.ServiceExports = 3, 5, 10, 50, true
	for _, f := range change {
		f(&c)
	}
	return meshtest.Mesh(w.t, sim.Options{Plain: true}, c).Clusters()[0]
}

// join puts the cluster's client file into the mesh directory.
func (w *world) join(r *sim.Running) {
	w.t.Helper()
	must(w.t, r.WriteClientFiles(w.dir))
}

// copying is a world in which a mirror has copied one cluster.
func copying(t *testing.T, change ...func(*Params)) (*world, *sim.Running, *running) {
	t.Helper()
	w := newWorld(t)
	a := w.remote("a", 1)
	w.join(a)
	m := w.mirror(change...)
	waittest.Until(t, "it to lead", m.Leads)
	w.equal(a)
	return w, a, m
}

// running is one mirror that runs.
type running struct {
	*Mirror
	writer *kvstore.Durable
	stop   func()
}

// mirror starts a mirror.
func (w *world) mirror(change ...func(*Params)) *running {
	w.t.Helper()
	opts := etcd.DefaultOptions()
	opts.QPS, opts.LockTTL = 0, 2*time.Second
	opts.Timings.BackoffMax, opts.Timings.ProbeInterval = 200*time.Millisecond, 200*time.Millisecond
	opts.Timings.StatusInterval, opts.Timings.StatusRetry = 200*time.Millisecond, 200*time.Millisecond
	timings := remotecluster.DefaultTimings()
	timings.RetryMin, timings.RetryMax = 20*time.Millisecond, 200*time.Millisecond
	as := rightstest.As(w.t, w.etcd, "mirror")
	d := etcd.NewDurable(func() (*clientfile.Config, error) { return as, nil }, opts)
	p := DefaultParams()
	p.Directory, p.Local, p.Writer = w.dir, wire.ClusterInfo{Name: "own", ID: 250, MaxConnectedClusters: 255}, d
	p.Engine, p.Timings, p.DrainDelay, p.Log = opts, timings, 100*time.Millisecond, w.log
	p.Metrics, p.Writing = store.NewMetrics(), syncstore.NewMetrics()
	for _, f := range change {
		f(&p)
	}
	m, err := New(p)
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- d.Run(ctx) }()
	go func() { ended <- m.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		<-ended
		<-ended
	})
	w.t.Cleanup(stop)
	return &running{Mirror: m, writer: d, stop: stop}
}

// state is how a cluster is.
func (r *running) state(name string) remotecluster.Status {
	for _, c := range r.Clusters() {
		if c.Name == name {
			return c
		}
	}
	return remotecluster.Status{}
}

// config changes a remote's configuration to have this ID.
func (w *world) config(r *sim.Running, id uint32) {
	w.t.Helper()
	key := wire.ClusterConfigKey(r.Cluster().Name)
	cfg, err := wire.DecodeClusterConfig([]byte(r.Contents()[key]))
	must(w.t, err)
	cfg.ID = id
	must(w.t, r.Put(w.t.Context(), key, cfg.Encode()))
}

var must = waittest.Must

// entry is a key as it stands in the own etcd.
type entry struct {
	value   string
	lease   int64
	created int64
	changed int64
}

// cache is what the own etcd has below a prefix.
func (w *world) cache(prefix string) map[string]entry {
	w.t.Helper()
	resp, err := w.etcd.Client(w.t).Get(w.t.Context(), prefix, clientv3.WithPrefix())
	must(w.t, err)
	all := make(map[string]entry)
	for _, kv := range resp.Kvs {
		all[string(kv.Key)] = entry{string(kv.Value), kv.Lease, kv.CreateRevision, kv.ModRevision}
	}
	return all
}

// wanted is what the own etcd must have of a cluster: its contents at the paths of
// the cache, its configuration as that of a copy, and the canaries without values.
func wanted(t testing.TB, r *sim.Running) map[string]string {
	t.Helper()
	name := r.Cluster().Name
	all := make(map[string]string)
	for key, value := range r.Contents() {
		if key == wire.ClusterConfigKey(name) {
			cfg, err := wire.DecodeClusterConfig([]byte(value))
			must(t, err)
			cfg.Capabilities.Cached, cfg.Capabilities.SyncedCanaries = true, true
			all[key] = string(cfg.Encode())
		}
		for _, res := range wire.Resources() {
			if rest, is := strings.CutPrefix(key, res.Prefix(name, false)); is {
				all[res.Key(name, true, rest)] = value
			}
		}
	}
	for _, res := range wire.Resources() {
		all[wire.SyncedKey(name, res, true)] = ""
	}
	return all
}

// copied is what the own etcd has of all clusters, in the form of wanted.
func (w *world) copied() map[string]string {
	w.t.Helper()
	all := make(map[string]string)
	for _, prefix := range []string{wire.CachePrefix, wire.ClusterConfigPrefix, wire.SyncedPrefix} {
		for key, e := range w.cache(prefix + "/") {
			all[key] = e.value
			if prefix == wire.SyncedPrefix {
				all[key] = ""
			}
		}
	}
	return all
}

// equal waits until the own etcd has just what the clusters have.
func (w *world) equal(clusters ...*sim.Running) {
	w.t.Helper()
	waittest.Try(w.t, "the copies to be what the clusters have", func() error {
		want := make(map[string]string)
		for _, r := range clusters {
			maps.Copy(want, wanted(w.t, r))
		}
		if diff := cmp.Diff(want, w.copied()); diff != "" {
			return errors.New("(-want +got)\n" + diff)
		}
		return nil
	})
}

// history are the events of the own etcd from a revision on, up to now.
func (w *world) history(from int64) []*clientv3.Event {
	w.t.Helper()
	ctx := waittest.Context(w.t)
	c := w.etcd.Client(w.t)
	head, err := c.Get(ctx, "x")
	must(w.t, err)
	var all []*clientv3.Event
	for resp := range c.Watch(ctx, "cilium/", clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithProgressNotify()) {
		must(w.t, resp.Err())
		all = append(all, resp.Events...)
		if len(all) > 0 && all[len(all)-1].Kv.ModRevision >= head.Header.Revision {
			break
		}
	}
	return all
}

func (w *world) revision() int64 {
	w.t.Helper()
	resp, err := w.etcd.Client(w.t).Get(w.t.Context(), "x")
	must(w.t, err)
	return resp.Header.Revision
}

// marked writes a key into the own etcd, so that a history has an end.
func (w *world) marked() {
	w.t.Helper()
	_, err := w.etcd.Client(w.t).Put(w.t.Context(), "cilium/end", "")
	must(w.t, err)
}

// since is what happened to the copies from a revision on.
func (w *world) since(from int64) (puts, deletes []*clientv3.Event) {
	w.t.Helper()
	w.marked()
	for _, e := range w.history(from) {
		key := string(e.Kv.Key)
		switch {
		case !strings.HasPrefix(key, wire.CachePrefix+"/") && !strings.HasPrefix(key, wire.ClusterConfigPrefix+"/"):
		case e.Type == clientv3.EventTypeDelete:
			deletes = append(deletes, e)
		default:
			puts = append(puts, e)
		}
	}
	return puts, deletes
}

// deleteLock deletes the lock's key behind its holder.
func (w *world) deleteLock() {
	w.t.Helper()
	c := w.etcd.Client(w.t)
	lock, err := c.Get(w.t.Context(), wire.KVStoreMeshLockPath+"/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	must(w.t, err)
	_, err = c.Delete(w.t.Context(), string(lock.Kvs[0].Key))
	must(w.t, err)
}
