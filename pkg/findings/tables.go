package findings

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Names of the tables.
const (
	ConflictTableName = "conflicts"
	EventTableName    = "events"
)

// MaxEvents is how many events are kept; above it, the oldest ones are dropped.
const MaxEvents = 1000

// Conflict is a disagreement between clusters. It is immutable.
type Conflict struct {
	Kind     Kind
	Code     codes.Code
	Subject  string   // the object of the disagreement, unique within the kind
	Clusters []string // the one that counts first
	Message  string   // the problem, and how to solve it
	Rule     string   // why the first one counts; empty when none counts more than the others
	More     int      // how many unlisted conflicts this one stands for; 0: it is a single conflict
	Since    time.Time
}

// Count returns how many conflicts these are.
func Count(all iter.Seq2[*Conflict, statedb.Revision]) (n int) {
	for c := range all {
		n += c.count()
	}
	return n
}

func (c *Conflict) count() int { return max(1, c.More) }

// Key is "kind/subject".
func (c *Conflict) Key() string { return key(c.Kind, c.Subject) }

func key(k Kind, subject string) string { return string(k) + "/" + subject }

// Involves reports whether the cluster is one of those that disagree.
func (c *Conflict) Involves(cluster string) bool { return slices.Contains(c.Clusters, cluster) }

// says reports whether both are equal, apart from the time when they began.
func (c *Conflict) says(o *Conflict) bool {
	return c.Key() == o.Key() && c.Message == o.Message && c.Rule == o.Rule && !c.differs(o)
}

// differs reports whether the other conflict is about other clusters, or has another winner: this causes an event. A
// change of a number in the message causes none.
func (c *Conflict) differs(o *Conflict) bool {
	return c.Code != o.Code || !slices.Equal(c.Clusters, o.Clusters)
}

// Event is something that happened. It is immutable.
type Event struct {
	ID       uint64 // grows by one with each event of the process
	Time     time.Time
	Clusters []string // the clusters that it concerns; the most important one first
	Kind     string
	Code     codes.Code
	Message  string
	Resource string // the list in the API that has the object; empty for none
	Name     string // of the object in that list
	Evidence map[string]string
}

// About how much memory findings take.
const (
	costFinding = 512
	costText    = 64 // of a text, in addition to its bytes
)

// Cost returns about how many bytes a conflict takes in memory.
func (c *Conflict) Cost() int {
	return costFinding + len(c.Subject) + len(c.Message) + len(c.Rule) + costText*len(c.Clusters)
}

// Cost returns about how many bytes an event takes in memory.
func (e *Event) Cost() int {
	cost := costFinding + len(e.Message) + len(e.Name) + costText*len(e.Clusters)
	for name, text := range e.Evidence {
		cost += costText + len(name) + len(text)
	}
	return cost
}

// Key identifies the event: its number.
func (e *Event) Key() string { return strconv.FormatUint(e.ID, 10) }

// Involves reports whether the event concerns the cluster.
func (e *Event) Involves(cluster string) bool { return slices.Contains(e.Clusters, cluster) }

var (
	conflictIndex = tables.TextIndex("key", true, (*Conflict).Key)
	eventIndex    = statedb.Index[*Event, uint64]{
		Name:       "id",
		FromObject: func(e *Event) index.KeySet { return index.NewKeySet(index.Uint64(e.ID)) },
		FromKey:    index.Uint64,
		FromString: index.Uint64String,
		Unique:     true,
	}
)

// ConflictByKey finds a conflict by "kind/subject".
func ConflictByKey(key string) statedb.Query[*Conflict] { return conflictIndex.Query(key) }

// EventByID finds an event.
func EventByID(id uint64) statedb.Query[*Event] { return eventIndex.Query(id) }

// Findings is the only writer of both tables.
type Findings struct {
	db        *statedb.DB
	conflicts statedb.RWTable[*Conflict]
	events    statedb.RWTable[*Event]
	lastID    uint64  // guarded by the events' write transaction
	limiter   limiter // used only by the goroutine that applies
}

// New registers the tables. It fails when the database already has a table of one of the names.
func New(db *statedb.DB) (*Findings, error) {
	f := &Findings{db: db}
	var errs [2]error
	f.conflicts, errs[0] = tables.New(db, ConflictTableName, (*Conflict).Key, conflictIndex)
	f.events, errs[1] = tables.New(db, EventTableName, func(e *Event) string { return strconv.FormatUint(e.ID, 10) }, eventIndex)
	return f, errors.Join(errs[:]...)
}

// Conflicts returns the table of conflicts.
func (f *Findings) Conflicts() statedb.Table[*Conflict] { return f.conflicts }

// Events returns the table of events.
func (f *Findings) Events() statedb.Table[*Event] { return f.events }

// apply adds and removes conflicts, and adds events for these changes and for the given ones, in one transaction. A
// conflict that exists already keeps its time. It returns the events as they are in the table. Events of changes that
// are too frequent are limited (see limiter).
func (f *Findings) apply(now time.Time, v verdicts, happened []Event) []Event {
	if len(v.began)+len(v.ended)+len(happened) == 0 && !f.limiter.due(now) {
		return nil
	}
	txn := f.db.WriteTxn(f.conflicts, f.events)
	defer txn.Abort()
	var moves []move
	for _, c := range v.began {
		old, _, found := f.conflicts.Get(txn, ConflictByKey(c.Key()))
		if found && old.says(c) {
			continue
		}
		dated := *c
		if dated.Since = now; found {
			dated.Since = old.Since
		}
		_, _, err := f.conflicts.Insert(txn, &dated)
		tables.Must(err)
		if !found || old.differs(c) {
			moves = append(moves, move{old: old, now: &dated})
		}
	}
	for _, key := range v.ended {
		old, _, found := f.conflicts.Get(txn, ConflictByKey(key))
		if !found {
			continue
		}
		_, _, err := f.conflicts.Delete(txn, old)
		tables.Must(err)
		moves = append(moves, move{old: old})
	}
	events := f.add(txn, now, f.limiter.pick(now, append(conflictEvents(moves), happened...)))
	txn.Commit()
	return events
}

// add inserts events into the table and drops the oldest ones.
func (f *Findings) add(txn statedb.WriteTxn, now time.Time, happened []Event) []Event {
	for i := range happened {
		e := happened[i]
		f.lastID++
		e.ID, e.Time = f.lastID, now
		happened[i] = e
		_, _, err := f.events.Insert(txn, &e)
		tables.Must(err)
	}
	for excess := f.events.NumObjects(txn) - MaxEvents; excess > 0; excess-- {
		for oldest := range f.events.All(txn) {
			_, _, err := f.events.Delete(txn, oldest)
			tables.Must(err)
			break
		}
	}
	return happened
}

// collector counts the conflicts when the metrics are read.
type collector struct {
	findings  *Findings
	conflicts *prometheus.Desc
}

// NewCollector returns the metrics of the findings, to be registered once.
func NewCollector(f *Findings) prometheus.Collector {
	return &collector{f, prometheus.NewDesc("mesh_agent_conflicts", "Current conflicts between clusters.", []string{"kind"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.conflicts }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counts := make(map[Kind]int)
	for conflict := range c.findings.Conflicts().All(c.findings.db.ReadTxn()) {
		counts[conflict.Kind] += conflict.count()
	}
	for _, kind := range Kinds() { // also kinds without conflicts
		ch <- prometheus.MustNewConstMetric(c.conflicts, prometheus.GaugeValue, float64(counts[kind]), string(kind))
	}
}
