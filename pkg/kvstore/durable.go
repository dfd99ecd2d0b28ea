package kvstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
)

// Durable is a [Writer] that outlives its sessions: when one is over it connects
// again, to the next endpoint, and the leases go on where the server is the
// same. Whoever writes holds on to one Durable for as long as it lives; each call
// is done in the session of the moment, and fails when that ends. Without a
// session a call waits for one, for at most Timings.Connect.
//
// A stream, a list and a lock belong to the session in which they began, and end with
// its reason; the error is [ErrClosed] only when the Durable itself is closed or no
// longer run. Nothing is tried a second time: whoever called knows what may be
// repeated. A list and watch that goes on across sessions is that of package store
// (Watch.Follow, with NewRawWatch for keys of any kind): it has the keys that were
// seen, which prove that a history is the same and tell what has vanished.
type Durable struct {
	load func() (*Config, error)
	opts Options
	log  *slog.Logger

	mu      sync.Mutex
	onProbe func(Probe)   // guarded by mu; nil: nobody wants them
	synced  bool          // guarded by mu; the first sync is complete
	session *Etcd         // guarded by mu; nil while there is none
	err     error         // guarded by mu; why there is none
	closed  bool          // guarded by mu
	changed chan struct{} // guarded by mu; closed and replaced with each change of the above
}

var _ Writer = (*Durable)(nil)

// errConnecting is why there is no session before the first attempt has ended.
var errConnecting = errors.New("the first connection is under way")

// NewDurable returns a writer that connects while [Durable.Run] runs. load is
// called before each attempt, so that a changed client file counts.
func NewDurable(load func() (*Config, error), o Options) *Durable {
	if o.Timings == (Timings{}) {
		o.Timings = DefaultTimings()
	}
	if o.Leases == nil {
		o.Leases = NewLeases()
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Durable{load: load, opts: o, log: log, err: errConnecting, changed: make(chan struct{})}
}

// Run keeps a session, until the context or [Durable.Close] ends it. It is called
// once. The pauses between attempts grow with the own cluster ([Options.Stretch]).
func (d *Durable) Run(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = d.opts.Timings.BackoffMax/10, d.opts.Timings.BackoffMax
	for attempt := 0; ; attempt++ {
		connected, err := d.live(ctx, attempt)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.isClosed():
			return ErrClosed
		case connected:
			d.log.Warn("The session with the kvstore is over, connecting again", "error", err)
			pause.Reset()
		default:
			d.log.Warn("Cannot connect to the kvstore, trying again", "error", err)
		}
		if err := waiting.Sleep(ctx, d.opts.Stretch(pause.NextBackOff())); err != nil {
			return err
		}
	}
}

// live is one session, from the attempt to connect to its end.
func (d *Durable) live(ctx context.Context, attempt int) (connected bool, err error) {
	cfg, err := d.load()
	if err != nil {
		d.set(nil, err)
		return false, err
	}
	session, err := Connect(ctx, cfg, attempt, d.opts)
	if err != nil {
		d.set(nil, err)
		return false, err
	}
	defer session.Close()
	if !d.set(session, nil) {
		return true, ErrClosed
	}
	err = session.Run(ctx, d.probed)
	d.set(nil, err)
	if ctx.Err() == nil && !d.isClosed() {
		session.end(err) // what is under way ends with the reason, and not as closed
	}
	return true, err
}

// set changes the session, unless the writer is closed.
func (d *Durable) set(session *Etcd, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.session, d.err = session, err
	if d.synced && session != nil {
		session.BootstrapComplete()
	}
	close(d.changed)
	d.changed = make(chan struct{})
	return true
}

// BootstrapComplete tells this session and all that come that the first sync is
// complete: from now on the everyday rate limit holds.
func (d *Durable) BootstrapComplete() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced = true
	if d.session != nil {
		d.session.BootstrapComplete()
	}
}

func (d *Durable) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// WaitConnected waits for a session that is connected (Status). The error is the
// context's, with the reason why there is none, or [ErrClosed].
func (d *Durable) WaitConnected(ctx context.Context) error {
	for {
		session, err := d.current(ctx)
		if err != nil {
			return err
		}
		if err = session.WaitConnected(ctx, true); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: there is no connection to the kvstore: %s", context.Cause(ctx), session.Status().LastError)
		}
		if err := d.after(ctx, session, err); err != nil {
			return err
		}
	}
}

// after waits until a session that is over is not the one of the moment any more.
func (d *Durable) after(ctx context.Context, over *Etcd, why error) error {
	for {
		d.mu.Lock()
		session, changed := d.session, d.changed
		d.mu.Unlock()
		if session != over {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: there is no connection to the kvstore: %w", context.Cause(ctx), why)
		}
	}
}

// WaitDisconnected waits until there is no session, or until the one of the moment is
// not connected (Status). It fails with the context alone.
func (d *Durable) WaitDisconnected(ctx context.Context) error {
	d.mu.Lock()
	session := d.session
	d.mu.Unlock()
	if session == nil {
		return nil
	}
	return session.WaitConnected(ctx, false)
}

// OnProbe gives f the result of each linearizable read of the watchdog, as [Etcd.Run]
// does, whatever the session: one after another, and f must not block. It takes the
// place of an earlier one; nil is nobody. What is tried without a session is no probe.
func (d *Durable) OnProbe(f func(Probe)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onProbe = f
}

func (d *Durable) probed(p Probe) {
	d.mu.Lock()
	f := d.onProbe
	d.mu.Unlock()
	if f != nil {
		f(p)
	}
}

// current returns the session, once there is one.
func (d *Durable) current(ctx context.Context) (*Etcd, error) {
	for {
		d.mu.Lock()
		session, err, closed, changed := d.session, d.err, d.closed, d.changed
		d.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case session != nil:
			return session, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: there is no connection to the kvstore: %w", context.Cause(ctx), err)
		}
	}
}

// use does one operation in the session of the moment.
func use[T any](ctx context.Context, d *Durable, op, key string, f func(*Etcd) (T, error)) (T, error) {
	wait, cancel := context.WithTimeout(ctx, d.opts.Timings.Connect)
	defer cancel()
	session, err := d.current(wait)
	if err != nil {
		var none T
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		return none, &KeyError{op, key, err}
	}
	return f(session)
}

// Get implements [Client].
func (d *Durable) Get(ctx context.Context, key string, holding ...*Lock) (*KeyValue, Position, error) {
	var at Position
	kv, err := use(ctx, d, "get", key, func(e *Etcd) (kv *KeyValue, err error) {
		kv, at, err = e.Get(ctx, key, holding...)
		return kv, err
	})
	return kv, at, err
}

// List implements [Client].
func (d *Durable) List(ctx context.Context, prefix string, page func(Page) error, holding ...*Lock) (Position, error) {
	return use(ctx, d, "list", prefix, func(e *Etcd) (Position, error) { return e.List(ctx, prefix, page, holding...) })
}

// Recall implements [Client].
func (d *Durable) Recall(ctx context.Context, prefix, from string, at Position, limit int) (Past, error) {
	return use(ctx, d, "recall", prefix, func(e *Etcd) (Past, error) { return e.Recall(ctx, prefix, from, at, limit) })
}

// Watch implements [Client].
func (d *Durable) Watch(ctx context.Context, prefix string, after Position) (Stream, error) {
	return use(ctx, d, "watch", prefix, func(e *Etcd) (Stream, error) { return e.Watch(ctx, prefix, after) })
}

// Head implements [Client].
func (d *Durable) Head(ctx context.Context) (Position, error) {
	return use(ctx, d, "head", "", func(e *Etcd) (Position, error) { return e.Head(ctx) })
}

// Put implements [Writer].
func (d *Durable) Put(ctx context.Context, key string, value []byte, opts ...Option) (Result, error) {
	return use(ctx, d, "put", key, func(e *Etcd) (Result, error) { return e.Put(ctx, key, value, opts...) })
}

// Delete implements [Writer].
func (d *Durable) Delete(ctx context.Context, key string, opts ...Option) (Result, error) {
	return use(ctx, d, "delete", key, func(e *Etcd) (Result, error) { return e.Delete(ctx, key, opts...) })
}

// DeletePrefix implements [Writer].
func (d *Durable) DeletePrefix(ctx context.Context, prefix string, opts ...Option) (Result, error) {
	return use(ctx, d, "delete prefix", prefix, func(e *Etcd) (Result, error) { return e.DeletePrefix(ctx, prefix, opts...) })
}

// Update implements [Writer].
func (d *Durable) Update(ctx context.Context, writes []Write, opts ...Option) (Result, error) {
	var first string
	if len(writes) > 0 {
		first = writes[0].Key
	}
	return use(ctx, d, "update", first, func(e *Etcd) (Result, error) { return e.Update(ctx, writes, opts...) })
}

// Owns implements [Writer].
func (d *Durable) Owns(lease int64) bool { return d.opts.Leases.owns(lease) }

// Lock implements [Writer].
func (d *Durable) Lock(ctx context.Context, path string) (*Lock, error) {
	return use(ctx, d, "lock", path, func(e *Etcd) (*Lock, error) { return e.Lock(ctx, path) })
}

// OnLeaseExpired implements [Writer].
func (d *Durable) OnLeaseExpired(prefix string, f func(keys []string)) {
	d.opts.Leases.observe(prefix, f)
}

// Status implements [Client].
func (d *Durable) Status() Status {
	d.mu.Lock()
	session, err := d.session, d.err
	d.mu.Unlock()
	if session != nil {
		return session.Status()
	}
	return Status{LastError: err.Error(), LastErrorAt: time.Now()}
}

// Close implements [Client]. The session ends with it; Run returns.
func (d *Durable) Close() {
	d.mu.Lock()
	session := d.session
	d.session, d.err, d.closed = nil, ErrClosed, true
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	if session != nil {
		session.Close()
	}
}
