package mirror

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// reassert is how often the configurations of the remotes are looked at although
// nothing was heard of them (wire.md §2.1).
const reassert = 5 * time.Minute

// term is a time of leading, with everything that was learnt in it.
type term struct {
	*Mirror
	began   time.Time
	lock    *kvstore.Lock
	outbox  *syncstore.Outbox
	configs *configs
	mesh    *clustermesh.Remotes
	copies  sync.Map // the latest *copyOf of each remote by its name

	judging sync.Mutex
	gauge   gauge // guarded by judging; how full our own etcd is
}

func (m *Mirror) newTerm(lock *kvstore.Lock) *term {
	t := &term{Mirror: m, began: time.Now(), lock: lock}
	t.outbox = syncstore.NewOutbox(m.Writer, t.holding, m.Writing, m.Log)
	t.gauge.Room = m.Room
	t.configs = &configs{
		sync: syncstore.New(syncstore.Params{
			Prefix: wire.ClusterConfigPrefix + "/", Shared: true, Vital: true, // one small key for each remote
			Outbox: t.outbox, Cluster: m.Params.Params.Local.Name,
			Reassert: reassert, Log: m.Log,
		}),
		writer: m.Writer, lock: lock, own: m.Params.Params.Local.Name, turn: make(chan struct{}, 1),
	}
	t.configs.sync.Complete()
	p := m.Params.Params
	p.Consumer = func(to clustermesh.Target) remotecluster.Consumer { return t.newCopy(to.Name) }
	p.Leftovers, p.Policy = t.leftovers, nil
	t.mesh = clustermesh.New(p)
	return t
}

// holding is the lock under which everything is written.
func (t *term) holding() *kvstore.Lock { return t.lock }

func (t *term) run(ctx context.Context) error {
	if w, is := t.Writer.(*kvstore.Durable); is {
		w.OnProbe(t.observe)
		defer w.OnProbe(nil)
	}
	return waiting.Together(ctx, t.outbox.Run, t.watchRoom, t.configs.sync.Run, t.mesh.Run, t.awaitCopied)
}

// observe takes the result of a linearizable read of the own kvstore.
func (t *term) observe(p kvstore.Probe) {
	t.copies.Range(func(_, c any) bool {
		c.(*copyOf).observe(p)
		return true
	})
}

// unready says by cluster what stands between this term and complete copies. A cluster that could
// not be connected in its time is not waited for; the mesh directory always is.
func (t *term) unready() map[string]string {
	since := time.Since(t.began)
	switch why := t.mesh.Unread(); {
	case why != "":
		return map[string]string{clustermesh.Directory: why}
	case since >= t.SyncTimeout:
		return nil
	}
	_, reasons := t.mesh.Ready()
	for _, c := range t.mesh.Clusters() {
		if !c.Connected && since >= t.ReadyTimeout {
			delete(reasons, c.Name)
		}
	}
	return reasons
}

// look is how often it is looked whether everything was copied.
const look = 100 * time.Millisecond

// awaitCopied notes how long it takes until everything was copied.
func (t *term) awaitCopied(ctx context.Context) error {
	for len(t.unready()) > 0 {
		if err := waiting.Sleep(ctx, look); err != nil {
			return err
		}
	}
	took := t.Written()
	clusters := t.mesh.Clusters()
	var without []string
	for _, c := range clusters {
		if !copied(c) {
			without = append(without, c.Name)
		}
	}
	if len(without) > 0 {
		t.Log.Warn("Not waiting longer: the copies of some clusters are missing or incomplete", "clusters", len(clusters)-len(without), "without", strings.Join(without, ", "), "took", took.Round(time.Millisecond))
		return nil
	}
	t.Log.Info("Copied", "clusters", len(clusters), "took", took.Round(time.Millisecond))
	return nil
}

// copied reports whether all of a cluster was copied once. That is so a moment before the
// cluster is ready, when the last list is complete and its watch is about to begin.
func copied(c remotecluster.Status) bool {
	for _, s := range c.Families {
		if !s.Synced {
			return false
		}
	}
	return len(c.Families) > 0
}

// leftovers names the clusters that have keys in the cache. The mirror that removed a cluster may not have finished,
// and keys whose writer lives do not end with a lease. The list is read late, because the mesh directory may not be
// complete when we start. It is tried until it succeeds, or ctx ends.
func (t *term) leftovers(ctx context.Context) ([]string, error) {
	if t.KeepRemoved {
		return nil, nil
	}
	if err := waiting.Sleep(ctx, t.DrainDelay); err != nil {
		return nil, err
	}
	var names []string
	err := waiting.UntilDone(ctx, time.Second, againMax, func() (err error) {
		names, err = t.cached(ctx)
		return err
	}, func(err error, _ time.Duration) {
		t.Log.Warn("Cannot read which clusters were copied before, trying again", "error", err)
	})
	return names, err
}

// cached are the names of all clusters that have keys in the cache, or canaries.
func (t *term) cached(ctx context.Context) ([]string, error) {
	found := make(map[string]bool)
	prefixes := []string{wire.SyncedPrefix + "/"}
	for _, r := range wire.Resources() {
		prefixes = append(prefixes, r.StorePrefix(true)+"/")
	}
	at, err := t.Writer.Head(ctx)
	if err != nil {
		return nil, err
	}
	for _, prefix := range prefixes {
		// One key of each cluster is enough: from there to what follows its last one.
		for from := ""; ; {
			past, err := t.Writer.Recall(ctx, prefix, from, at, 1)
			if err != nil {
				return nil, err
			}
			if len(past.Items) == 0 {
				break
			}
			name, _, _ := strings.Cut(string(past.Items[0].Key[len(prefix):]), "/")
			found[name] = true
			from = prefix + name + "0" // what follows the slash
		}
	}
	delete(found, t.Params.Params.Local.Name) // its canaries are those of what operates it
	return slices.Sorted(maps.Keys(found)), nil
}
