package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// health gathers how the followers are doing.
type health struct {
	log    *slog.Logger
	report func(error)

	mu       sync.Mutex // guards everything below, and held while reporting
	kinds    []*kindHealth
	asked    bool  // some request was made
	noAnswer error // why the API server did not answer the latest one; nil when it did
	reported string
}

// kindHealth is how one follower is doing. Guarded by health.mu.
type kindHealth struct {
	resource string
	// current is when the API server was last heard to say what changed, or that nothing
	// did: it knew of nothing else then. It does so about once a minute, or is asked
	// ([follower.confirm]). Zero before the first list.
	current time.Time
	err     error // why the latest request did not succeed; nil when it did, or the kind does not exist
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
	changed := !h.asked || (noAnswer == nil) != (h.noAnswer == nil)
	h.asked, h.noAnswer = true, noAnswer
	if !changed {
		return
	}
	if noAnswer == nil {
		h.log.Info("The Kubernetes API answers")
	} else {
		h.log.Warn("The Kubernetes API does not answer; the agent keeps the data of the own cluster", "error", noAnswer)
	}
	h.tell()
}

// succeeded notes that a request for a kind did, or that the kind does not exist.
func (h *health) succeeded(k *kindHealth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.err = nil
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
		h.log.Warn("The Kubernetes API refuses requests for a kind of objects; the agent keeps the known ones",
			"resource", k.resource, "error", err)
	}
	k.err = err
	h.tell()
}

// heard notes that everything that the API server said until then is in the table.
func (h *health) heard(k *kindHealth, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.After(k.current) {
		k.current = until
	}
}

// heardAt is until when everything that the API server said is in the table.
func (h *health) heardAt(k *kindHealth) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return k.current
}

// current is until when all of these kinds are known to be what the API server has;
// zero when one of them never was.
func (h *health) current(which func(resource string) bool) (least time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.kinds {
		if which(k.resource) && (least.IsZero() || k.current.Before(least)) {
			if least = k.current; least.IsZero() {
				return least
			}
		}
	}
	return least
}

// tell reports the current problem, if it has changed.
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

// trouble returns the first problem; nil when there is none.
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
