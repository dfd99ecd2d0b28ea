package health

import (
	"strings"
	"time"

	"github.com/cilium/hive/cell"
)

// scope is one reporter. It implements [cell.Health].
type scope struct {
	registry *Registry
	record   *record
}

func (s *scope) OK(message string) {
	s.registry.update(s.record, func(status *Status, now time.Time) {
		status.State, status.Message = OK, message
		status.LastSuccess, status.ConsecutiveFailures = now, 0
	})
}

func (s *scope) Degraded(reason string, err error) {
	if err != nil {
		reason += ": " + err.Error()
	}
	s.registry.update(s.record, func(status *Status, now time.Time) {
		status.State, status.Message = Degraded, reason
		status.LastFailure = now
		status.ConsecutiveFailures++
	})
}

func (s *scope) Stopped(reason string) {
	s.registry.update(s.record, func(status *Status, _ time.Time) {
		status.State, status.Message = Stopped, reason
	})
}

func (s *scope) NewScope(name string) cell.Health { return s.registry.open(s.record, name) }

// Close removes the scope and everything below it.
func (s *scope) Close() {
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.record.closed {
		return
	}
	for name, rec := range r.scopes {
		if rec == s.record || strings.HasPrefix(name, s.record.status.Name+".") {
			rec.closed = true
			delete(r.scopes, name)
		}
	}
}
