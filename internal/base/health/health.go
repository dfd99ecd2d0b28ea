// Package health keeps the states that the modules and background tasks of the agent report of themselves, for
// /v1/health and `mesh-agent get health`.
//
// A [Registry] is a tree of scopes. hive hands every module a scope and its jobs make scopes below it; names are
// joined with dots. A scope that never reports itself, like a module of which only the jobs report, shows the worst
// state below it.
//
// Concurrency: every method may be called by any goroutine. Nothing blocks but
// a short lock, nothing fails, and no goroutine is started.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/hive/cell"
)

// State says how a scope is doing.
type State string

// The states of a scope.
const (
	Unknown  State = "unknown"  // has not reported yet
	OK       State = "ok"       // works as expected
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

// Registry is the tree of scopes.
type Registry struct {
	now func() time.Time

	mu     sync.Mutex
	scopes map[string]*scope // those that are open, by name
}

// New returns an empty registry.
func New() *Registry { return &Registry{now: time.Now, scopes: make(map[string]*scope)} }

// NewScope returns a scope at the top of the tree. When the name is taken it gets a number.
func (r *Registry) NewScope(name string) cell.Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open(name)
}

// open makes a scope; mu is held.
func (r *Registry) open(name string) *scope {
	unique := name
	for n := 2; r.scopes[unique] != nil; n++ {
		unique = fmt.Sprintf("%s#%d", name, n)
	}
	s := &scope{registry: r, status: Status{Name: unique, State: Unknown}}
	r.scopes[unique] = s
	return s
}

// scope is one reporter, a [cell.Health], with its status. The registry's mu guards it.
type scope struct {
	registry *Registry
	status   Status
	children bool // it once had a scope below it
	closed   bool // removed: later reports are dropped
}

// update changes a scope that has neither stopped nor been closed.
func (s *scope) update(change func(status *Status, now time.Time)) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	if !s.closed && s.status.State != Stopped {
		change(&s.status, s.registry.now())
	}
}

func (s *scope) OK(message string) {
	s.update(func(status *Status, now time.Time) {
		status.State, status.Message = OK, message
		status.LastSuccess, status.ConsecutiveFailures = now, 0
	})
}

func (s *scope) Degraded(reason string, err error) {
	if err != nil {
		reason += ": " + err.Error()
	}
	s.update(func(status *Status, now time.Time) {
		status.State, status.Message = Degraded, reason
		status.LastFailure = now
		status.ConsecutiveFailures++
	})
}

func (s *scope) Stopped(reason string) {
	s.update(func(status *Status, _ time.Time) { status.State, status.Message = Stopped, reason })
}

func (s *scope) NewScope(name string) cell.Health {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.children = true
	return s.registry.open(s.status.Name + "." + name)
}

func (s *scope) Close() {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	if s.closed {
		return
	}
	for name, other := range s.registry.scopes {
		if other == s || strings.HasPrefix(name, s.status.Name+".") {
			other.closed = true
			delete(s.registry.scopes, name)
		}
	}
}

// List returns every scope, sorted by name.
func (r *Registry) List() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Status, 0, len(r.scopes))
	for _, s := range r.scopes {
		list = append(list, s.summary())
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// summary is the scope's own report or, without one, the worst of those below it; mu is held.
func (s *scope) summary() Status {
	sum := s.status
	if sum.State != Unknown {
		return sum
	}
	for _, below := range s.below() {
		if below.LastSuccess.After(sum.LastSuccess) {
			sum.LastSuccess = below.LastSuccess
		}
		if below.LastFailure.After(sum.LastFailure) {
			sum.LastFailure = below.LastFailure
		}
		sum.ConsecutiveFailures = max(sum.ConsecutiveFailures, below.ConsecutiveFailures)
		if severity(below.State) > severity(sum.State) {
			sum.State, sum.Message = below.State, strings.TrimPrefix(below.Name, s.status.Name+".")+": "+below.Message
		}
	}
	switch {
	case sum.State != Unknown:
	case s.children:
		sum.State, sum.Message = Stopped, "none of its tasks is running"
	default:
		sum.Message = "has not reported yet"
	}
	return sum
}

// below are the reports of the scopes below, in the order of their names; mu is held.
func (s *scope) below() []Status {
	var found []Status
	for name, other := range s.registry.scopes {
		if strings.HasPrefix(name, s.status.Name+".") {
			found = append(found, other.status)
		}
	}
	slices.SortFunc(found, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

func severity(s State) int { return slices.Index([]State{Unknown, Stopped, OK, Degraded}, s) }
