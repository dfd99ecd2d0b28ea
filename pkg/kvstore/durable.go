package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// Durable is a [Writer] that outlives its sessions: when a session ends it connects again, to the
// next endpoint, and the leases continue if the server is the same. Each call uses the current
// session and fails when that ends. It is never repeated, because only the caller knows whether it
// may be. Without a session a call waits for one, for at most DurableOptions.Wait.
//
// A stream, a list and a lock end with the session in which they began, with the same reason. The
// error [ErrClosed] means that the Durable itself is closed, or that Run has ended. Package store has
// a list and watch that continues across sessions (Watch.Follow, with NewRawWatch for keys of any kind).
type Durable struct {
	open func(ctx context.Context, attempt int) (Session, error)
	o    DurableOptions

	connections rate.Sometimes // limits the log lines about connections

	mu      sync.Mutex
	onProbe func(Probe)   // guarded by mu; nil for none
	synced  bool          // guarded by mu; the first sync is complete
	session Session       // guarded by mu; nil while there is none
	err     error         // guarded by mu; why there is no session
	closed  bool          // guarded by mu
	changed chan struct{} // guarded by mu; closed and replaced with each change of session, err or closed
}

// DurableOptions are those of a [Durable].
type DurableOptions struct {
	// Leases are the leases that open gives to each session.
	Leases *Leases
	// Wait is how long an operation waits for a session; 0: 15 s.
	Wait time.Duration
	// PauseMax is the longest pause between two attempts; 0: 3 s. Stretch lengthens
	// each; nil: not at all.
	PauseMax time.Duration
	Stretch  func(time.Duration) time.Duration
	// Hint returns advice about an error; nil for no hints.
	Hint func(error) string
	// Log receives a line for each session that begins, and a warning for each that ends or cannot be
	// opened; nil for none.
	Log *slog.Logger
}

var _ Writer = (*Durable)(nil)

// errConnecting is why there is no session before the first attempt has ended.
var errConnecting = errors.New("the first connection is under way")

// NewDurable returns a writer that connects while [Durable.Run] runs. The function open begins
// a session with the endpoint of this attempt, counted from 0.
func NewDurable(open func(ctx context.Context, attempt int) (Session, error), o DurableOptions) *Durable {
	o.Wait, o.PauseMax = cmp.Or(o.Wait, 15*time.Second), cmp.Or(o.PauseMax, 3*time.Second)
	o.Leases, o.Log = cmp.Or(o.Leases, NewLeases()), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Stretch == nil {
		o.Stretch = func(d time.Duration) time.Duration { return d }
	}
	return &Durable{
		open: open, o: o, err: errConnecting, changed: make(chan struct{}),
		connections: rate.Sometimes{First: 10, Interval: time.Minute},
	}
}

// Run keeps a session open until the context ends or [Durable.Close] is called. It is called once.
func (d *Durable) Run(ctx context.Context) error {
	pause := waiting.Pauses(d.o.PauseMax/10, d.o.PauseMax)
	for attempt := 0; ; attempt++ {
		connected, err := d.live(ctx, attempt)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.isClosed():
			return ErrClosed
		case connected:
			d.o.Log.Warn("The session with the kvstore ended, connecting again", "error", err)
			pause.Reset()
		default:
			d.o.Log.Warn("Cannot connect to the kvstore, trying again", "error", err)
		}
		if err := waiting.Sleep(ctx, d.o.Stretch(pause.NextBackOff())); err != nil {
			return err
		}
	}
}

// live runs one session, from the attempt to connect to its end.
func (d *Durable) live(ctx context.Context, attempt int) (connected bool, err error) {
	began := time.Now()
	session, err := d.open(ctx, attempt)
	if err != nil {
		d.set(nil, err)
		return false, err
	}
	defer session.Close()
	if !d.set(session, nil) {
		return true, ErrClosed
	}
	d.connections.Do(func() {
		d.o.Log.Info("Connected to the kvstore", "endpoint", session.Status().Endpoint, "took", time.Since(began).Round(time.Millisecond))
	})
	err = session.Run(ctx, d.probed)
	d.set(nil, err)
	if ctx.Err() == nil && !d.isClosed() {
		session.End(err) // calls in progress end with this reason, and not with ErrClosed
	}
	return true, err
}

// set changes the session, unless the Durable is closed. It reports whether it did.
func (d *Durable) set(session Session, err error) bool {
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

// BootstrapComplete declares the first sync complete: from now on the normal rate limit
// applies, in this session and all later ones.
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
// context's, with the reason for the missing connection, or [ErrClosed].
func (d *Durable) WaitConnected(ctx context.Context) error {
	var over Session
	var why error
	for {
		session, err := d.next(ctx, over, why)
		if err != nil {
			return err
		}
		if why = session.WaitConnected(ctx, true); why == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: there is no connection to the kvstore: %s", context.Cause(ctx), session.Status().LastError)
		}
		over = session
	}
}

// next waits for a session other than over, which ended for the reason why, and returns it.
func (d *Durable) next(ctx context.Context, over Session, why error) (Session, error) {
	for {
		d.mu.Lock()
		session, err, closed, changed := d.session, d.err, d.closed, d.changed
		d.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case session != nil && session != over:
			return session, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: there is no connection to the kvstore: %w", context.Cause(ctx), cmp.Or(err, why))
		}
	}
}

// WaitDisconnected waits until there is no session, or until the current one is not
// connected (Status). Its only error is that of the context.
func (d *Durable) WaitDisconnected(ctx context.Context) error {
	d.mu.Lock()
	session := d.session
	d.mu.Unlock()
	if session == nil {
		return nil
	}
	return session.WaitConnected(ctx, false)
}

// OnProbe calls f with the result of each linearizable read of the watchdog, as [Session.Run]
// does, in every session: one call after another, and f must not block. It replaces an earlier
// f; nil removes it. An attempt to connect is not a probe.
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

// use does one operation in the current session.
func use[T any](ctx context.Context, d *Durable, op, key string, f func(Session) (T, error)) (T, error) {
	wait, cancel := context.WithTimeout(ctx, d.o.Wait)
	defer cancel()
	session, err := d.next(wait, nil, nil)
	if err != nil {
		var none T
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		return none, withHint(d.o.Hint, op, key, err)
	}
	return f(session)
}

// Do calls f with the current session; op names the operation in errors.
func (d *Durable) Do(ctx context.Context, op string, f func(Session) error) error {
	_, err := use(ctx, d, op, "", func(s Session) (struct{}, error) { return struct{}{}, f(s) })
	return err
}

// Get implements [Client].
func (d *Durable) Get(ctx context.Context, key string, opts ...ReadOption) (*KeyValue, Position, error) {
	var at Position
	kv, err := use(ctx, d, "get", key, func(s Session) (kv *KeyValue, err error) {
		kv, at, err = s.Get(ctx, key, opts...)
		return kv, err
	})
	return kv, at, err
}

// List implements [Client].
func (d *Durable) List(ctx context.Context, prefix string, page func(Page) error, opts ...ReadOption) (Position, error) {
	return use(ctx, d, "list", prefix, func(s Session) (Position, error) { return s.List(ctx, prefix, page, opts...) })
}

// Recall implements [Client].
func (d *Durable) Recall(ctx context.Context, prefix, from string, at Position, limit int, opts ...SelectOption) (Past, error) {
	return use(ctx, d, "recall", prefix, func(s Session) (Past, error) { return s.Recall(ctx, prefix, from, at, limit, opts...) })
}

// Watch implements [Client].
func (d *Durable) Watch(ctx context.Context, prefix string, after Position, opts ...SelectOption) (Stream, error) {
	return use(ctx, d, "watch", prefix, func(s Session) (Stream, error) { return s.Watch(ctx, prefix, after, opts...) })
}

// Head implements [Client].
func (d *Durable) Head(ctx context.Context) (Position, error) {
	return use(ctx, d, "head", "", func(s Session) (Position, error) { return s.Head(ctx) })
}

// Put implements [Writer].
func (d *Durable) Put(ctx context.Context, key string, value []byte, opts ...Option) (Result, error) {
	return use(ctx, d, "put", key, func(s Session) (Result, error) { return s.Put(ctx, key, value, opts...) })
}

// Delete implements [Writer].
func (d *Durable) Delete(ctx context.Context, key string, opts ...Option) (Result, error) {
	return use(ctx, d, "delete", key, func(s Session) (Result, error) { return s.Delete(ctx, key, opts...) })
}

// DeletePrefix implements [Writer].
func (d *Durable) DeletePrefix(ctx context.Context, prefix string, opts ...Option) (Result, error) {
	return use(ctx, d, "delete prefix", prefix, func(s Session) (Result, error) { return s.DeletePrefix(ctx, prefix, opts...) })
}

// Update implements [Writer].
func (d *Durable) Update(ctx context.Context, writes []Write, opts ...Option) (Result, error) {
	var first string
	if len(writes) > 0 {
		first = writes[0].Key
	}
	return use(ctx, d, "update", first, func(s Session) (Result, error) { return s.Update(ctx, writes, opts...) })
}

// Owns implements [Writer].
func (d *Durable) Owns(lease int64) bool { return d.o.Leases.owns(lease) }

// Lock implements [Writer].
func (d *Durable) Lock(ctx context.Context, path string) (*Lock, error) {
	return use(ctx, d, "lock", path, func(s Session) (*Lock, error) { return s.Lock(ctx, path) })
}

// OnLeaseExpired implements [Writer].
func (d *Durable) OnLeaseExpired(prefix string, f func(keys []string)) {
	d.o.Leases.observe(prefix, f)
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

// Close implements [Client]. It closes the session, and Run returns.
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
