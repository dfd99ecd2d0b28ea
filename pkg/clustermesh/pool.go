package clustermesh

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// client has the methods of a session that the pool and its handles use.
type client interface {
	remotecluster.Client
	BootstrapBegins()
}

// pool shares sessions: clusters whose client files have equal contents, such as
// all clusters that a mirror caches in one etcd, use one connection, one
// watchdog and one heartbeat. Each cluster has its own [handle] on the session.
//
// The first cluster that needs a session starts it. Other clusters join it while it is open or
// being connected. It is closed with its last handle. The pause before the next attempt is
// shared as well: the server gets one connection attempt, for any number of clusters.
type pool struct {
	connect func(ctx context.Context, cfg *clientfile.Config, attempt int) (client, error)
	begin   func(*session) // runs live of the session; set before connect is used
	// retryMin and retryMax bound a cluster's own pause between attempts, and
	// stretch lengthens it ([Engine]).
	retryMin, retryMax time.Duration
	stretch            func(time.Duration) time.Duration

	mu     sync.Mutex
	places map[[32]byte]*place
	of     map[string]*place // by cluster: the place of its latest configuration
	opened int               // number of all sessions that were ever connected
}

// place holds the data of one configuration, as long as a cluster uses it. Guarded by the pool's mu.
type place struct {
	key      [32]byte
	clusters int      // number of clusters with this configuration
	attempt  int      // selects the next endpoint
	session  *session // nil when there is no session to join
	pause    backoff.BackOff
	due      time.Time // when the next attempt may be made
}

// newPause returns pauses that start and end at half of a cluster's own. This is the shortest
// pause of a cluster, with its jitter. So a cluster that is alone on a session never waits for it.
func (p *pool) newPause() backoff.BackOff {
	b := waiting.Pauses(p.retryMin/2, p.retryMax/2)
	b.RandomizationFactor = 0
	return b
}

// session is one connection and the clusters that use it.
type session struct {
	pool  *pool
	place *place
	cfg   *clientfile.Config
	// attempt chooses the endpoint.
	attempt int
	due     time.Time // when to connect

	connected chan struct{} // closed when connecting has ended
	over      chan struct{} // closed when the session has ended
	stop      context.CancelFunc

	// Guarded by the pool's mu.
	client   client // nil until connected
	err      error  // why connecting failed, or the session ended
	handles  map[*handle]struct{}
	complete bool // every handle's bootstrap is complete, and BootstrapComplete of the client was called

	probing sync.Mutex     // held while a probe is passed to the handles; guards last
	last    *kvstore.Probe // nil before the first
}

func newPool(e Engine, retryMin, retryMax time.Duration) *pool {
	return &pool{
		connect: func(ctx context.Context, cfg *clientfile.Config, attempt int) (client, error) {
			return e.Open(ctx, cfg, attempt)
		},
		retryMin: retryMin, retryMax: retryMax, stretch: e.Stretch,
		places: make(map[[32]byte]*place),
		of:     make(map[string]*place),
	}
}

// own makes the group the owner of all sessions: each is one goroutine in the group,
// until ctx ends or no cluster uses the session. Callers of join must run in the same
// group, so that its Wait does not return too early.
func (p *pool) own(ctx context.Context, g *errgroup.Group) {
	p.begin = func(s *session) {
		var life context.Context
		life, s.stop = context.WithCancel(ctx)
		g.Go(func() error {
			defer s.stop()
			s.live(life)
			return nil
		})
	}
}

// join returns a handle on the session of the cluster's configuration, once the
// session is connected.
func (p *pool) join(ctx context.Context, cluster string, cfg *clientfile.Config) (*handle, error) {
	h := p.take(cluster, cfg)
	select {
	case <-ctx.Done():
		h.Close()
		return nil, ctx.Err()
	case <-h.session.connected:
	}
	p.mu.Lock()
	err := h.session.err
	if h.Client = h.session.client; err == nil {
		h.session.updateBootstrap()
	}
	p.mu.Unlock()
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// take returns a new handle, and starts a session when there is none to join.
func (p *pool) take(cluster string, cfg *clientfile.Config) *handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.move(cluster, cfg.Hash)
	if at.session == nil {
		s := &session{
			pool: p, place: at, cfg: cfg, attempt: at.attempt, due: at.due,
			connected: make(chan struct{}), over: make(chan struct{}), handles: make(map[*handle]struct{}),
		}
		at.attempt++
		at.session = s
		p.begin(s)
	}
	h := &handle{session: at.session}
	h.session.handles[h] = struct{}{}
	return h
}

// move records which configuration the cluster has now; mu is held.
func (p *pool) move(cluster string, key [32]byte) *place {
	if at := p.of[cluster]; at != nil && at.key == key {
		return at
	}
	p.forget(cluster)
	at := p.places[key]
	if at == nil {
		at = &place{key: key, pause: p.newPause()}
		p.places[key] = at
	}
	at.clusters++
	p.of[cluster] = at
	return at
}

// leave forgets a cluster that was removed.
func (p *pool) leave(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(cluster)
}

func (p *pool) forget(cluster string) {
	at := p.of[cluster]
	if at == nil {
		return
	}
	delete(p.of, cluster)
	if at.clusters--; at.clusters == 0 {
		delete(p.places, at.key)
	}
}

// counts returns how many sessions are open, how many clusters use them, and
// how many were ever opened.
func (p *pool) counts() (sessions, clusters, opened int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.places {
		if at.session != nil && at.session.client != nil {
			sessions++
			clusters += len(at.session.handles)
		}
	}
	return sessions, clusters, p.opened
}

// live runs the session, from connecting to its end.
func (s *session) live(ctx context.Context) {
	var c client
	err := guard.Run(func() (err error) {
		if err = waiting.Sleep(ctx, time.Until(s.due)); err == nil {
			c, err = s.pool.connect(ctx, s.cfg, s.attempt)
		}
		return err
	})
	if err != nil {
		s.ended(err, s.connected)
		return
	}
	defer c.Close()
	s.pool.mu.Lock()
	s.client = c
	s.pool.opened++
	close(s.connected)
	s.pool.mu.Unlock()
	s.ended(guard.Run(func() error { return c.Run(ctx, s.probed) }), s.over)
}

// ended records the end of a session, or of connecting. If clusters still use the session,
// the next attempt must wait for a pause.
func (s *session) ended(err error, notify chan struct{}) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	defer close(notify)
	s.err = err
	s.retire()
	if len(s.handles) > 0 {
		s.place.due = time.Now().Add(s.pool.stretch(s.place.pause.NextBackOff()))
	}
}

// retire prevents further clusters from joining the session; the pool's mu is held.
func (s *session) retire() {
	if s.place.session == s {
		s.place.session = nil
	}
}

// probed passes a probe to every handle, one after another.
func (s *session) probed(p kvstore.Probe) {
	s.probing.Lock()
	defer s.probing.Unlock()
	s.last = &p
	s.pool.mu.Lock()
	handles := slices.Collect(maps.Keys(s.handles))
	s.pool.mu.Unlock()
	for _, h := range handles {
		if h.onProbe != nil {
			h.onProbe(p)
		}
	}
}

// updateBootstrap calls BootstrapComplete or BootstrapBegins of the client when this changes:
// the bootstrap is complete when no handle is in its first sync. The pool's mu is held.
func (s *session) updateBootstrap() {
	complete := true
	for h := range s.handles {
		complete = complete && h.complete
	}
	if complete == s.complete || s.client == nil {
		return
	}
	if s.complete = complete; complete {
		s.client.BootstrapComplete()
	} else {
		s.client.BootstrapBegins()
	}
}
