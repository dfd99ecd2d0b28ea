package health

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// List returns every scope, sorted by name.
func (r *Registry) List() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Status, 0, len(r.scopes))
	for _, rec := range r.scopes {
		list = append(list, r.summarize(rec))
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// summarize returns a scope's own report or, without one, the worst of those
// below it. The caller holds mu.
func (r *Registry) summarize(rec *record) Status {
	status := rec.status
	if status.State != Unknown {
		return status
	}
	for _, below := range r.below(status.Name) {
		s := below.status
		status.LastSuccess = later(status.LastSuccess, s.LastSuccess)
		status.LastFailure = later(status.LastFailure, s.LastFailure)
		status.ConsecutiveFailures = max(status.ConsecutiveFailures, s.ConsecutiveFailures)
		if severity(s.State) > severity(status.State) {
			status.State, status.Message = s.State, strings.TrimPrefix(s.Name, rec.status.Name+".")+": "+s.Message
		}
	}
	switch {
	case status.State != Unknown:
	case rec.children:
		status.State, status.Message = Stopped, "none of its tasks is running"
	default:
		status.Message = "has not reported yet"
	}
	return status
}

// below returns the records of the scopes below a name, in the order of their
// names. The caller holds mu.
func (r *Registry) below(name string) []*record {
	var found []*record
	for other, rec := range r.scopes {
		if strings.HasPrefix(other, name+".") {
			found = append(found, rec)
		}
	}
	slices.SortFunc(found, func(a, b *record) int { return cmp.Compare(a.status.Name, b.status.Name) })
	return found
}

func severity(s State) int {
	switch s {
	case Degraded:
		return 3
	case OK:
		return 2
	case Stopped:
		return 1
	default:
		return 0
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
