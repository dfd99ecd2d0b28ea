package findings

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Params are the inputs of a Watch.
type Params struct {
	*clustermesh.Tables
	Reader    clustermesh.Reader // nil: no clusters are read
	Leads     func() bool        // nil: no leader election; while it is false, clusters are unknown, not gone
	Described *local.Cluster     // nil: the own cluster has no description
	LogLevel  *logging.Level     // nil: it does not change
	Log       *slog.Logger       // each event is a line of it; nil: no log
	Boundary  *boundary.Boundary // counts and logs failures with one object or detector; nil: only Log has them
}

// Intervals at which a Watch looks.
const (
	interval       = 200 * time.Millisecond // at tables and clusters, after the first change since the last look
	aroundInterval = time.Second            // at what gives no signal: see surroundings
	statesInterval = 5 * time.Second        // at changes that come with time alone, such as a missing heartbeat
	addressesPause = 10 * time.Millisecond  // between two looks at the addresses, so that many changes come together
)

// Watch derives the findings.
type Watch struct {
	findings *Findings
	Params

	// The detectors, each fed from one source.
	claims     *claims
	strays     *strays
	backends   *backends
	networks   *networks
	duplicates *duplicates
	ports      *ports
	affinities *affinities
	names      *clusterNames
	states     *conflictSet   // conflicts from the clusters' states
	more       *conflictSet   // the number of conflicts that the others do not list
	sets       []*conflictSet // all others
	severities map[codes.Code]codes.Severity

	nodes      *tables.Follower[*nodes.Node]
	services   *tables.Follower[*services.Global]
	exports    *tables.Follower[*services.Export]
	identities *tables.Follower[*identities.Identity]

	clusters []remotecluster.Status
	own      []remotecluster.Status // the own cluster, if its kvstore is read
	around   surroundings
	seen     uint64    // the mesh's revision when clusters was read
	looked   time.Time // when clusters was read
}

// NewWatch returns a watch, which has not looked yet. It fails when a table is not one of the database's.
func NewWatch(f *Findings, s Params) (*Watch, error) {
	s.Log = cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	s.Boundary = cmp.Or(s.Boundary, boundary.New(s.Log).Part("findings"))
	if s.Reader == nil {
		s.Reader = clustermesh.None{}
	}
	w := &Watch{
		findings: f, Params: s,
		claims: &claims{ips: s.IPs, page: make([]ipcache.Change, 0, 1024), conflicts: newConflictSet()}, strays: &strays{ips: s.IPs, conflicts: newConflictSet()},
		backends: &backends{of: make(map[string][]strayBackends), conflicts: newConflictSet()}, networks: newNetworks(), ports: &ports{newConflictSet()},
		names: newClusterNames(), states: newConflictSet(), more: newConflictSet(),
		severities: codes.Severities(),
	}
	w.duplicates, w.affinities = newDuplicates(w.identity), newAffinities(w.exportsOf)
	w.sets = []*conflictSet{w.claims.conflicts, w.strays.conflicts, w.backends.conflicts, w.networks.conflicts, w.duplicates.conflicts, w.ports.conflicts, w.affinities.conflicts, w.states}
	var errs [4]error
	w.nodes, errs[0] = tables.Follow(s.DB, s.Nodes.Table())
	w.services, errs[1] = tables.Follow(s.DB, s.Services.Global())
	w.identities, errs[2] = tables.Follow(s.DB, s.Identities.Table())
	w.exports, errs[3] = tables.Follow(s.DB, s.Services.ServiceExports())
	return w, errors.Join(errs[:]...)
}

// Close stops following the tables. Run calls it at its end.
func (w *Watch) Close() {
	w.nodes.Close()
	w.services.Close()
	w.exports.Close()
	w.identities.Close()
}

// Run looks until ctx ends. It must be called only once.
func (w *Watch) Run(ctx context.Context) error {
	defer w.Close()
	for ctx.Err() == nil {
		w.Look(time.Now())
		w.idle(ctx)
	}
	return ctx.Err()
}

// idle returns when it is time to look: a short time after a table or a cluster has changed, so that many changes come
// together, and at the latest after aroundInterval. Meanwhile it looks at the addresses.
func (w *Watch) idle(ctx context.Context) {
	next := time.Now().Add(aroundInterval)
	set := statedb.NewWatchSet()
	set.Add(w.nodes.Changed(), w.services.Changed(), w.exports.Changed(), w.identities.Changed())
	if ch := w.Reader.Changed(w.seen); ch != nil {
		set.Add(ch)
	}
	for {
		addresses := w.IPs.Changed(w.claims.revision)
		set.Add(addresses)
		until, cancel := context.WithDeadline(ctx, next)
		changed, err := set.Wait(until, 0)
		cancel()
		if err != nil {
			return
		}
		before := len(changed)
		if changed = slices.DeleteFunc(changed, func(ch <-chan struct{}) bool { return ch == addresses }); len(changed) < before {
			if waiting.Sleep(ctx, addressesPause) != nil {
				return
			}
			// The other detectors wait: while hundreds of clusters start, each change of an address would make all of
			// them run.
			var v verdicts
			w.apart(func() { w.claims.look(&v) })
			w.report(time.Now(), v, nil)
		}
		if len(changed) > 0 {
			set.Clear()
			if soon := time.Now().Add(interval); soon.Before(next) {
				next = soon
			}
		}
	}
}

// Look updates the findings from all changes. Run calls it; only one goroutine may call it at a time. Without changes
// it costs almost nothing.
func (w *Watch) Look(now time.Time) {
	var v verdicts
	w.apart(func() { w.claims.look(&v) })
	w.apart(func() { w.strays.look(&v) })
	w.nodes.Drain(eachApart(w, w.networks.set))
	w.apart(func() { w.networks.look(&v) })
	w.identities.Drain(eachApart(w, w.duplicates.set))
	w.apart(func() { w.duplicates.look(&v) })
	w.services.Drain(eachApart(w, func(g *services.Global, deleted bool) {
		w.ports.set(g, deleted, &v)
		w.backends.set(g, deleted)
	}))
	w.apart(func() { w.backends.look(&v) })
	w.apart(func() { w.lookAtMorePorts(&v) })
	w.exports.Drain(eachApart(w, w.affinities.set))
	w.apart(func() { w.affinities.look(&v) })
	var happened []Event
	w.apart(func() { happened = w.meshChanges(now, &v) })
	w.report(now, v, happened)
}

// apart isolates a failure in one detector from all others.
func (w *Watch) apart(look func()) { _ = w.Boundary.Run(func() error { look(); return nil }) }

// eachApart isolates a failure with one object from all others.
func eachApart[T any](w *Watch, set func(object T, deleted bool)) func(T, bool) {
	return func(object T, deleted bool) { w.apart(func() { set(object, deleted) }) }
}

func (w *Watch) lookAtMorePorts(v *verdicts) {
	w.ports.conflicts.judgeMore(func(key string) {
		namespace, name, _ := strings.Cut(subjectOf(key), "/")
		if g, _, found := w.Services.Global().Get(w.DB.ReadTxn(), services.GlobalByName(namespace, name)); found {
			w.ports.set(g, false, v)
		}
	})
}

// identity reads an identity from the table.
func (w *Watch) identity(cluster string, id uint32) *identities.Identity {
	i, _, _ := w.Identities.Table().Get(w.DB.ReadTxn(), identities.ByKey(id, cluster))
	return i
}

func (w *Watch) exportsOf(namespace, name string) []*services.Export {
	return statedb.Collect(w.Services.ServiceExports().List(w.DB.ReadTxn(), services.ExportsByName(namespace, name)))
}

func (w *Watch) nodesOf(cluster string) []*nodes.Node {
	return statedb.Collect(nodes.ByCluster(w.DB.ReadTxn(), w.Nodes.Table(), cluster))
}

// meshChanges returns the events of the clusters since the last look.
func (w *Watch) meshChanges(now time.Time, v *verdicts) (happened []Event) {
	revision := w.Reader.Revision()
	around := w.surroundings()
	if revision == w.seen && now.Sub(w.looked) < statesInterval && around.level == w.around.level && around.mistakes == w.around.mistakes {
		return nil
	}
	clusters := w.Reader.Clusters()
	if w.Leads != nil && !w.Leads() { // called last: the term may have ended meanwhile
		w.clusters, clusters, around.ignored = nil, nil, w.around.ignored
	}
	happened = clusterEvents(w.clusters, clusters)
	all := clusters
	if own, is := w.Reader.Local(); is {
		happened = append(happened, ownEvents(w.own, own)...)
		w.own = []remotecluster.Status{own}
		all = append(clusters[:len(clusters):len(clusters)], own)
	}
	found := append(idConflicts(clusters), rangeConflicts(all)...)
	w.states.setAll(append(found, w.names.look(now, clusters, w.nodesOf)...), v)
	happened = append(happened, agentEvents(w.around, around)...)
	w.clusters, w.around, w.seen, w.looked = clusters, around, revision, now
	return happened
}

func (w *Watch) surroundings() surroundings {
	s := surroundings{ignored: w.Reader.Ignored()}
	if w.Described != nil {
		st := w.Described.State()
		s.mistakes = mistakes(st.Err, st.Refused)
	}
	if w.LogLevel != nil {
		s.level = w.LogLevel.Get()
	}
	return s
}

// report writes the results to the tables and to the log.
func (w *Watch) report(now time.Time, v verdicts, happened []Event) {
	dirty := false
	for _, b := range w.sets {
		dirty, b.dirty = dirty || b.dirty, false
	}
	if dirty {
		w.more.setAll(unlisted(w.sets...), &v)
	}
	v.sort()
	for _, e := range w.findings.apply(now, v, happened) {
		attributes := []any{"code", string(e.Code)}
		if len(e.Clusters) > 0 {
			attributes = append(attributes, "cluster", e.Clusters[0])
		}
		w.Log.Log(context.Background(), w.level(&e), e.Message, attributes...)
	}
}

// level returns the log level for the event.
func (w *Watch) level(e *Event) slog.Level {
	if e.Kind == resolved || w.severities[e.Code] == codes.Info {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
