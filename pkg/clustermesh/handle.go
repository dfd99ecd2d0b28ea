package clustermesh

import (
	"context"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// handle is one cluster's use of a session. It implements [remotecluster.Client].
// The caller must end its own streams before it calls Close.
type handle struct {
	kvstore.Client // the session's; set once it is connected

	session *session
	onProbe func(kvstore.Probe) // guarded by the session's probing
	// complete: its first sync is over. Guarded by the pool's mu.
	complete bool
}

// Run waits until the session has ended and returns why, or until ctx ends. Meanwhile it passes the
// probes to onProbe, first the latest one at once. It never calls onProbe after it has returned.
func (h *handle) Run(ctx context.Context, onProbe func(kvstore.Probe)) error {
	h.follow(onProbe)
	defer h.follow(nil)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.session.over:
		h.session.pool.mu.Lock()
		defer h.session.pool.mu.Unlock()
		return h.session.err
	}
}

func (h *handle) follow(onProbe func(kvstore.Probe)) {
	h.session.probing.Lock()
	defer h.session.probing.Unlock()
	h.onProbe = onProbe
	if onProbe != nil && h.session.last != nil {
		onProbe(*h.session.last)
	}
}

// BootstrapComplete takes effect when it was called on all present handles. It also resets
// the pauses, since the session has been useful to one cluster.
func (h *handle) BootstrapComplete() {
	h.session.pool.mu.Lock()
	defer h.session.pool.mu.Unlock()
	h.complete = true
	h.session.place.pause.Reset()
	h.session.updateBootstrap()
}

// Close releases the handle. Closing the last handle closes the session.
func (h *handle) Close() {
	s := h.session
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if _, present := s.handles[h]; !present {
		return
	}
	delete(s.handles, h)
	if len(s.handles) > 0 {
		s.updateBootstrap()
		return
	}
	s.retire()
	s.stop()
}
