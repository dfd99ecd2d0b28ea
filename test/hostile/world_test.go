package hostile

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	etcdtest.Main(m)
}

var must = waittest.Must

// freshBound is the usual bound of freshness in these tests: older data is stale.
const freshBound = 5 * time.Second

// patience is the limit of each wait.
var patience = flag.Duration("hostile.patience", 5*time.Minute, "how long anything may take on a busy machine")

// remotes are the clusters of a mesh directory.
type remotes struct {
	tb      testing.TB
	dir     string
	honest  []*cluster
	numbers int                                            // number of hostile clusters so far
	of      interface{ Clusters() []remotecluster.Status } // a mesh or a mirror, once it exists
}

// world is a mesh that runs as in internal/agent, with two honest clusters on real etcds.
type world struct {
	remotes
	db      *statedb.DB
	view    *clustermesh.Ingest
	mesh    *clustermesh.Remotes
	sources httpapi.Params

	mu     sync.Mutex
	codes  map[string]map[codes.Code]string // guarded by mu; all codes that were ever shown, by cluster, with a message
	unwell []string                         // guarded by mu; problems of the honest clusters
	before map[string]int                   // guarded by mu; failures of the honest clusters before they were observed
}

func own() wire.ClusterInfo {
	return wire.ClusterInfo{Name: "own", ID: 250, MaxConnectedClusters: 255}
}

// impatient are the options of sessions with short timeouts.
func impatient() etcd.Options {
	o := etcd.DefaultOptions()
	o.QPS, o.PageLimit = 0, 50
	t := &o.Timings
	t.Connect, t.Dial, t.Read, t.Page, t.WatchOpen, t.Probe = 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second, 5*time.Second
	t.ProbeInterval, t.BackoffMax = 300*time.Millisecond, 200*time.Millisecond
	t.HeartbeatLimit = time.Hour // no process writes it again
	return o
}

func hasty() remotecluster.Timings {
	t := remotecluster.DefaultTimings()
	t.RetryMin, t.RetryMax, t.ConflictRetry = 50*time.Millisecond, 500*time.Millisecond, 50*time.Millisecond
	t.StaleAfter = freshBound
	return t
}

// newWorld runs a mesh with two honest clusters, and waits until they are synced.
func newWorld(tb testing.TB, change ...func(*clustermesh.Params)) *world {
	tb.Helper()
	w := newMesh(tb, change...)
	w.join(w.honestCluster("c1", 1))
	w.join(w.honestCluster("c2", 2))
	w.synced()
	w.observe()
	return w
}

// newMesh runs a mesh without clusters.
func newMesh(tb testing.TB, change ...func(*clustermesh.Params)) *world {
	tb.Helper()
	w := &world{remotes: remotes{tb: tb, dir: tb.TempDir()}, db: statedb.New(), codes: make(map[string]map[codes.Code]string)}
	tables, err := view.NewTables(w.db, ipcache.New(ipcache.Rules{}))
	must(tb, err)
	w.view, err = clustermesh.NewIngest(own(), tables.Tables)
	must(tb, err)
	policy, err := disconnect.ParsePolicy(nil)
	must(tb, err)
	p := clustermesh.Params{
		Directory: w.dir, Local: own(), SyncTimeout: time.Hour, Policy: &policy, ApplyPolicy: w.view.ApplyPolicy,
		Consumer: w.view.Consumer(store.NewMetrics()), Engine: impatient(), Timings: hasty(),
		Log: slog.New(slog.DiscardHandler),
	}
	share(&p)
	for _, f := range change {
		f(&p)
	}
	w.mesh = clustermesh.New(p)
	w.of = w.mesh
	seen, err := view.New(view.Params{Tables: tables, Reader: w.mesh})
	must(tb, err)
	tb.Cleanup(seen.Close)
	w.sources = httpapi.Params{
		View: seen, Missing: w.mesh.Missing,
		Gatherer: prometheus.NewRegistry(), LogLevel: new(logging.Level), Settings: api.Settings{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.mesh.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			tb.Errorf("the mesh ended: %v", err)
		}
	})
	return w
}

// honestCluster runs a real etcd with a cluster in it.
func (w *remotes) honestCluster(name string, id uint32) (*cluster, string) {
	w.tb.Helper()
	etcd := etcdtest.StartProcess(w.tb)
	kv := etcd.Client(w.tb)
	c := newCluster(name, id, func(kvs map[string][]byte) {
		var ops []clientv3.Op
		for k, v := range kvs {
			ops = append(ops, clientv3.OpPut(k, string(v)))
		}
		ctx, cancel := context.WithTimeout(context.Background(), *patience)
		defer cancel()
		if _, err := kv.Txn(ctx).Then(ops...).Commit(); err != nil {
			w.tb.Errorf("writing to %s: %v", name, err)
		}
	})
	c.fill(60)
	w.honest = append(w.honest, c)
	return c, etcd.Endpoint()
}

// hostileCluster runs a fake etcd with a cluster in it, honest at first.
func (w *remotes) hostileCluster(tb testing.TB) (*cluster, *server) {
	tb.Helper()
	w.numbers++
	s := serve(tb, uint64(1000+w.numbers))
	c := newCluster(fmt.Sprint("h", w.numbers), uint32(10+w.numbers), s.put)
	c.fill(60)
	return c, s
}

// join puts a client file into the mesh directory.
func (w *remotes) join(c *cluster, endpoint string) {
	w.tb.Helper()
	file := filepath.Join(w.dir, c.name)
	must(w.tb, os.WriteFile(file+".tmp", []byte("endpoints:\n- "+endpoint+"\n"), 0o600))
	must(w.tb, os.Rename(file+".tmp", file))
}

// leave removes it again.
func (w *remotes) leave(c *cluster) {
	w.tb.Helper()
	must(w.tb, os.Remove(filepath.Join(w.dir, c.name)))
}

// status is the status of a cluster in a mesh or a mirror.
func (w *remotes) status(name string) (remotecluster.Status, bool) {
	for _, c := range w.of.Clusters() {
		if c.Name == name {
			return c, true
		}
	}
	return remotecluster.Status{}, false
}

// until waits for a condition.
func (w *remotes) until(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	waittest.Until(tb, what, ok, func() (text string) {
		for _, c := range w.of.Clusters() {
			text += fmt.Sprintf("%s: %s %s %q, last error %q\n", c.Name, c.State, c.Code, c.Message, c.LastError)
		}
		return text
	})
}

// synced waits until the honest clusters are ready and equal to their etcds.
func (w *world) synced() {
	w.tb.Helper()
	for _, c := range w.honest {
		w.until(w.tb, c.name+" to be ready and fresh", func() bool { st, _ := w.status(c.name); return unwell(st, st.Failures, time.Now()) == "" })
		w.until(w.tb, c.name+" to equal its etcd", func() bool { return w.equal(c) })
	}
}

// observe looks at the clusters until the end of the test: it collects their codes, and checks that the honest ones are
// ready and fresh all the time.
func (w *world) observe() {
	w.mu.Lock()
	w.before = make(map[string]int)
	for _, st := range w.mesh.Clusters() {
		w.before[st.Name] = st.Failures // on a busy machine the first answers may have been late
	}
	w.mu.Unlock()
	w.tb.Cleanup(func() {
		for _, text := range w.unwell {
			w.tb.Errorf("an honest cluster noticed: %s", text)
		}
	})
	meanwhile(w.tb, 10*time.Millisecond, w.look)
}

func (w *world) look() {
	for _, st := range w.mesh.Clusters() {
		w.mu.Lock()
		shown := w.codes[st.Name]
		if shown == nil {
			shown = make(map[codes.Code]string)
			w.codes[st.Name] = shown
		}
		if _, known := shown[st.Code]; !known {
			shown[st.Code] = st.Message
		}
		if slices.ContainsFunc(w.honest, func(c *cluster) bool { return c.name == st.Name }) {
			if text := unwell(st, w.before[st.Name], time.Now()); text != "" && len(w.unwell) < 10 {
				w.unwell = append(w.unwell, text)
			}
		}
		w.mu.Unlock()
	}
}

// unwell returns the problem of a cluster that should not be affected; failures is the number of its earlier failures.
func unwell(st remotecluster.Status, failures int, now time.Time) string {
	if st.State != remotecluster.Ready || st.Failures > failures {
		return fmt.Sprintf("%s is %s, with %d failures: %s", st.Name, st.State, st.Failures, st.Message)
	}
	for r, s := range st.Families {
		if age := now.Sub(s.Freshness.AsOf); age > 2*freshBound {
			return fmt.Sprintf("%s of %s is known as of %s ago", r, st.Name, age)
		}
	}
	return ""
}

// shows waits until the cluster has shown one of the codes.
func (w *world) shows(tb testing.TB, c *cluster, want []codes.Code) {
	tb.Helper()
	w.until(tb, fmt.Sprint(c.name, " to show one of ", want), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(want, func(code codes.Code) bool { _, shown := w.codes[c.name][code]; return shown })
	})
}

// codesOf are the codes that a cluster has shown.
func (w *world) codesOf(c *cluster) map[codes.Code]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[codes.Code]string)
	for code, text := range w.codes[c.name] {
		all[code] = text
	}
	return all
}

// sentinel changes an object in each honest cluster and waits until the change is seen.
func (w *world) sentinel(tb testing.TB, n int) {
	tb.Helper()
	for _, c := range w.honest {
		c.show(n%60, n)
		w.until(tb, "a change of "+c.name+" to be seen", func() bool { return w.equal(c) })
	}
}
