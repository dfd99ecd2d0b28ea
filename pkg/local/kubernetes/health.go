package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Status is what there is to say of a source at one moment.
type Status struct {
	// Server is where the API server is.
	Server string `json:"server"`
	// Reachable tells whether the API server answered the latest request, and
	// Since since when that is so, or not; zero before the first one.
	Reachable bool      `json:"reachable"`
	Since     time.Time `json:"since,omitzero"`
	// Error says what is wrong first; empty when nothing is.
	Error string       `json:"error,omitempty"`
	Kinds []KindStatus `json:"kinds"`
}

// KindStatus is how far one kind of objects is known.
type KindStatus struct {
	// Resource is what the kind is called: "services".
	Resource string `json:"resource"`
	// Listed: everything that was there at the start is known.
	Listed bool `json:"listed"`
	// Absent: the kind has no definition, and so no objects.
	Absent  bool `json:"absent,omitempty"`
	Objects int  `json:"objects"`
	// Current is when the API server was last heard to say what changed, or that
	// nothing did: it knew of nothing else then. It does so at least about once a
	// minute. Zero before the first list.
	Current time.Time `json:"current,omitzero"`
	// Error says why the kind is not followed now; empty while it is.
	Error string `json:"error,omitempty"`
}

// health gathers how the followers are doing.
type health struct {
	log    *slog.Logger
	report func(error)
	now    func() time.Time

	mu       sync.Mutex // guards everything below, and held while reporting
	kinds    []*kindHealth
	noAnswer error     // why the API server did not answer the latest request; nil when it did
	since    time.Time // since when it does, or does not; zero before the first request
	reported string
}

// kindHealth is how one follower is doing. Guarded by health.mu.
type kindHealth struct {
	resource string
	listed   bool
	absent   bool
	current  time.Time
	err      error // why the latest request did not succeed
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

// reached notes whether the API server answered a request; nil is that it did.
func (h *health) reached(noAnswer error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.since.IsZero() || (noAnswer == nil) != (h.noAnswer == nil)
	h.noAnswer = noAnswer
	if !changed {
		return
	}
	h.since = h.now()
	if noAnswer == nil {
		h.log.Info("The Kubernetes API answers")
	} else {
		h.log.Warn("The Kubernetes API does not answer; what is known of our own cluster is kept", "error", noAnswer)
	}
	h.tell()
}

// succeeded notes that a request for a kind did.
func (h *health) succeeded(k *kindHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.absent, k.err = false, nil
	h.tell()
}

// failed notes that a request for a kind did.
func (h *health) failed(k *kindHealth, err error) {
	if errors.Is(err, errNoAnswer) {
		err = errNoAnswer // without the address, whose parameters differ each time
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if isRefusal(err) && (k.err == nil || k.err.Error() != err.Error()) {
		h.log.Warn("A kind of objects is refused by the Kubernetes API; what is known of it is kept",
			"resource", k.resource, "error", err)
	}
	k.absent, k.err = false, err
	h.tell()
}

// heard notes that everything that the API server said until then is in the table.
func (h *health) heard(k *kindHealth, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.listed, k.current = true, until
}

// current is until when all of these kinds are known to be what the API server has;
// zero when one of them never was.
func (h *health) current(resources ...string) (least time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.kinds {
		if slices.Contains(resources, k.resource) && (least.IsZero() || k.current.Before(least)) {
			if least = k.current; least.IsZero() {
				return least
			}
		}
	}
	return least
}

// absent notes that the kind does not exist.
func (h *health) absent(k *kindHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.absent, k.err = true, nil
	h.tell()
}

// tell reports what is wrong, if that is other than before.
func (h *health) tell() {
	err := h.trouble()
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
	if h.noAnswer != nil {
		return fmt.Errorf("the Kubernetes API does not answer: %w", h.noAnswer)
	}
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
	s := Status{Reachable: h.noAnswer == nil && !h.since.IsZero(), Since: h.since, Error: h.reported}
	for _, k := range h.kinds {
		one := KindStatus{Resource: k.resource, Listed: k.listed, Absent: k.absent, Current: k.current}
		if k.err != nil {
			one.Error = k.err.Error()
		}
		s.Kinds = append(s.Kinds, one)
	}
	return s
}
