// Package health keeps what the modules and background tasks of the agent say
// of themselves, for /v1/health and `mesh-agent get health`.
//
// A [Registry] is the root of a tree of scopes. hive hands every module a scope
// and its jobs make scopes below it; names are joined with dots. A scope that
// never reports itself, as a module does that leaves it to its jobs, shows the
// worst of what is below it.
//
// Concurrency: every method may be called by any goroutine. Nothing blocks but
// a short lock, nothing fails, and no goroutine is started.
package health

import (
	"fmt"
	"sync"
	"time"

	"github.com/cilium/hive/cell"
)

// State says how a scope is doing.
type State string

// The states of a scope.
const (
	Unknown  State = "unknown"  // has not reported yet
	OK       State = "ok"       // does what it should
	Degraded State = "degraded" // fails, and says why in the message
	Stopped  State = "stopped"  // has ended and will not report again
)

// Status is one scope at one moment.
type Status struct {
	Name                string // unique
	State               State
	Message             string
	LastSuccess         time.Time // zero: never
	LastFailure         time.Time // zero: never
	ConsecutiveFailures int       // since the last success
}

// Registry is the tree of scopes and, as a [cell.Health], its root. What is
// reported on the registry itself appears under the name "agent".
type Registry struct {
	root scope
	now  func() time.Time

	mu sync.Mutex
	// scopes holds every open scope by its name. Guarded by mu.
	scopes map[string]*record
}

// record is what is known of one scope. Guarded by Registry.mu.
type record struct {
	status   Status
	children bool // it once had a scope below it
	closed   bool // removed: what is reported on it is dropped
}

// New returns an empty registry.
func New() *Registry {
	r := &Registry{now: time.Now, scopes: make(map[string]*record)}
	r.root = scope{registry: r, record: &record{status: Status{Name: "agent", State: Unknown}}}
	return r
}

// OK reports that the agent as a whole does what it should.
func (r *Registry) OK(message string) { r.root.OK(message) }

// Degraded reports that the agent as a whole fails.
func (r *Registry) Degraded(reason string, err error) { r.root.Degraded(reason, err) }

// Stopped reports that the agent as a whole has ended.
func (r *Registry) Stopped(reason string) { r.root.Stopped(reason) }

// NewScope returns a scope at the top of the tree.
func (r *Registry) NewScope(name string) cell.Health { return r.open(nil, name) }

// Close does nothing: the registry outlives its scopes.
func (r *Registry) Close() {}

// open makes a scope. When the name is taken it gets a number.
func (r *Registry) open(parent *record, name string) cell.Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	if parent != nil {
		parent.children = true
		name = parent.status.Name + "." + name
	}
	unique := name
	for n := 2; r.scopes[unique] != nil; n++ {
		unique = fmt.Sprintf("%s#%d", name, n)
	}
	rec := &record{status: Status{Name: unique, State: Unknown}}
	r.scopes[unique] = rec
	return &scope{registry: r, record: rec}
}

// update changes a scope that has neither stopped nor been closed.
func (r *Registry) update(rec *record, change func(s *Status, now time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.closed || rec.status.State == Stopped {
		return
	}
	if rec == r.root.record {
		r.scopes[rec.status.Name] = rec
	}
	change(&rec.status, r.now())
}
