package health

import (
	"cmp"
	"slices"
	"strings"
)

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

// summary is the scope's own report or, without one, the worst of those below it; mu is
// held.
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
