package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"
)

// Status is how a source is doing.
type Status struct {
	Server string // where the API server is
	// Reachable tells whether the API server answers, and Since since when that
	// is so, or not; zero before the first answer or failure.
	Reachable bool
	Since     time.Time
	Err       string // what is wrong; empty when nothing is
	Kinds     []KindStatus
}

// KindStatus is how far one kind of objects is known.
type KindStatus struct {
	Resource string // "services"
	Listed   bool   // everything that was there at the start is known
	Absent   bool   // it has no definition, and so no objects
	Objects  int
	// Current is when the API server was last heard to say what changed, or that
	// nothing did: it knew of nothing else then. It does so at least about once a
	// minute. Zero before the first list.
	Current time.Time
	Err     string // why the kind is not followed now; empty while it is
}

// health gathers how the followers are doing.
type health struct {
	log    *slog.Logger
	report func(error)
	now    func() time.Time

	mu        sync.Mutex // guards everything below, and held while reporting
	kinds     []*kindHealth
	reachable bool
	since     time.Time
	reported  string
}

// kindHealth is how one follower is doing. Guarded by health.mu.
type kindHealth struct {
	resource string
	listed   bool
	absent   bool
	current  time.Time
	answered bool // the latest request was answered, be it with a refusal
	err      error
}

func newHealth(log *slog.Logger, report func(error)) *health {
	return &health{log: log, report: report, now: time.Now}
}

// add is called for each follower before any of them runs.
func (h *health) add(resource string) *kindHealth {
	k := &kindHealth{resource: resource}
	h.kinds = append(h.kinds, k)
	return k
}

// answered notes that a request succeeded.
func (h *health) answered(k *kindHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.absent, k.answered, k.err = false, true, nil
	h.changed()
}

// failed notes that a request failed.
func (h *health) failed(k *kindHealth, err error) {
	if in, ok := errors.AsType[*url.Error](err); ok {
		err = in.Err // the address differs each time, in its parameters
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := k.err
	k.absent, k.answered, k.err = false, isAnswer(err), err
	if k.answered && (before == nil || before.Error() != err.Error()) {
		h.log.Warn("A kind of objects is refused by the Kubernetes API; what is known of it is kept",
			"resource", k.resource, "error", err)
	}
	h.changed()
}

// heard notes that the list is complete or that a watch said something.
func (h *health) heard(k *kindHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.listed, k.current = true, h.now()
}

// absent notes that the kind does not exist.
func (h *health) absent(k *kindHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.absent, k.answered, k.err = true, true, nil
	h.changed()
}

// changed draws the conclusions, and tells of them when they are others than
// before. The server is reachable while any request for a kind that exists is
// answered: it is one server, but its connection is lost for one after the other.
func (h *health) changed() {
	reachable := false
	for _, k := range h.kinds {
		reachable = reachable || k.answered && !k.absent
	}
	err := h.trouble()
	if reachable != h.reachable || h.since.IsZero() && err != nil {
		h.reachable, h.since = reachable, h.now()
		if reachable {
			h.log.Info("The Kubernetes API answers")
		} else {
			h.log.Warn("The Kubernetes API does not answer; what is known of our own cluster is kept", "error", err)
		}
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != h.reported {
		h.reported = text
		h.report(err)
	}
}

// trouble is what is wrong first; nil when nothing is.
func (h *health) trouble() error {
	for _, k := range h.kinds {
		if k.err != nil {
			return fmt.Errorf("%s: %w", k.resource, k.err)
		}
	}
	return nil
}

// status is all but the address and the numbers of objects.
func (h *health) status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Status{Reachable: h.reachable, Since: h.since, Err: h.reported}
	for _, k := range h.kinds {
		one := KindStatus{Resource: k.resource, Listed: k.listed, Absent: k.absent, Current: k.current}
		if k.err != nil {
			one.Err = k.err.Error()
		}
		s.Kinds = append(s.Kinds, one)
	}
	return s
}
