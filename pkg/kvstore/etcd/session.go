package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// receiveLimit is the maximum size of a received message, in bytes. A larger page is requested again
// with fewer keys. A fragment of events is at most as large as the requests that the server accepts,
// for which etcd's documentation allows at most 10 MiB.
const receiveLimit = 12 << 20

// headerLimit is the maximum size of the headers and trailers of an answer, including the text of an error, in bytes.
const headerLimit = 64 << 10

// Session is a [kvstore.Writer] of a real etcd: one session with one endpoint. [Connect] makes it,
// [Session.Run] is its watchdog, and [Session.Close] ends it.
type Session struct {
	*kvstore.EngineWriter

	opts     Options
	endpoint string
	limit    *limiter
	dialer   *dialer

	client *clientv3.Client
	kv     pb.KVClient
	watch  pb.WatchClient
	maint  pb.MaintenanceClient
	lease  pb.LeaseClient
	auth   pb.AuthClient

	// life ends with the session. Its cause is the reason.
	life context.Context //nolint:containedctx // the session is what it scopes
	end  context.CancelCauseFunc

	pinned   atomic.Uint64  // the etcd cluster ID of the first response; 0 before
	highest  atomic.Int64   // the highest revision known to have been reached
	progress atomic.Bool    // this version's progress answers can be trusted
	doubts   waiting.Signal // makes the next probe due at once

	closing sync.Once
	mu      sync.Mutex
	health  health        // guarded by mu
	wake    chan struct{} // guarded by mu; closed and replaced when Connected changes
}

// Connect opens a session with one endpoint of the configuration. Attempts, counted from 0, use the
// endpoints in turn. Connect returns once a linearizable read has succeeded; its response pins the
// etcd cluster ID of the session. It fails as soon as the endpoint refuses the connection, or at the
// deadline, with an error that has the endpoint, the problem of the connection, and advice.
func Connect(ctx context.Context, cfg *clientfile.Config, attempt int, o Options) (*Session, error) {
	return newSession(ctx, cfg, attempt, o, nil)
}

// Reach is [Connect] for a test of the rights of a user: it also succeeds when the linearizable read
// fails with [kvstore.ErrPermissionDenied]. Then the session is not connected, is pinned by its
// first response, and may only be used for reads.
func Reach(ctx context.Context, cfg *clientfile.Config, attempt int, o Options) (*Session, error) {
	return newSession(ctx, cfg, attempt, o, kvstore.ErrPermissionDenied)
}

// newSession opens a session. If its first read fails with the error enough, it succeeds nevertheless.
func newSession(ctx context.Context, cfg *clientfile.Config, attempt int, o Options, enough error) (*Session, error) {
	o.Timings = cmp.Or(o.Timings, DefaultTimings())
	e := &Session{
		opts:     o,
		endpoint: cfg.Endpoints[uint(attempt)%uint(len(cfg.Endpoints))], //nolint:gosec // any bits will do
		limit:    newLimiter(o),
		dialer:   newDialer(cfg, o),
		wake:     make(chan struct{}),
		doubts:   waiting.NewSignal(),
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	e.EngineWriter = kvstore.NewWriter(e, o.writerOptions())
	if err := e.connect(ctx, cfg, enough); err != nil {
		e.Close()
		return nil, hint.Failed("connect", e.endpoint, err)
	}
	return e, nil
}

// connect makes the steps of Connect. The first failure that the dialer reports ends them.
func (e *Session) connect(ctx context.Context, cfg *clientfile.Config, enough error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.dialer.onFailure(cancel)
	defer e.dialer.onFailure(nil)
	limit := &noAnswerError{what: "connecting", after: e.opts.Timings.Connect}
	ctx, stop := context.WithTimeoutCause(ctx, e.opts.Timings.Connect, limit)
	defer stop()

	err := e.open(ctx, cfg)
	var at kvstore.Position
	if err == nil {
		at, err = e.head(ctx, e.opts.Timings.Connect)
	}
	if err == nil {
		e.update(func(h *health) { h.begin(time.Now(), e.endpoint, at) })
		e.Join(at.ClusterID)
		e.askEndpoint(ctx)
		return nil
	}
	if enough != nil && errors.Is(err, enough) {
		e.askEndpoint(ctx)
		e.update(func(h *health) { h.status.Endpoint, h.status.EtcdClusterID = e.endpoint, e.pinned.Load() })
		return nil
	}
	ke, isKeyError := errors.AsType[*kvstore.KeyError](err)
	switch cause := context.Cause(ctx); {
	case caller.Err() != nil && e.dialer.trouble() != nil:
		return fmt.Errorf("%w: %w", caller.Err(), e.dialer.trouble())
	case cause == error(limit):
		return limit.with(e.dialer.trouble())
	case cause != nil:
		return cause
	case isKeyError:
		return ke.Err // the caller asked to connect, not to read
	default:
		return err
	}
}

// The flow-control windows: how many bytes a server may send before we have read them, enough for
// 40 MB/s over 100 ms. They are fixed because gRPC would otherwise measure them with a ping for
// incoming data, which is half of the cost of an idle session.
const (
	streamWindow     = 4 << 20
	connectionWindow = 8 << 20
)

// turnLimit is the maximum wait before a connection is made (turn), in addition to the time
// for making it: enough for a million nodes.
const turnLimit = 20 * time.Second

// open makes the etcd client; with a user name, it also authenticates.
func (e *Session) open(ctx context.Context, cfg *clientfile.Config) error {
	transport, err := transport(cfg, e.endpoint, e.dialer)
	if err != nil {
		return err
	}
	var ec clientv3.Config
	if err := cfg.Decode(&ec); err != nil {
		return err
	}
	ec.Endpoints = []string{e.endpoint}
	ec.AutoSyncInterval = 0 // a session has one endpoint
	ec.TLS = nil
	ec.DialTimeout = e.opts.Timings.Connect
	ec.DialKeepAliveTime = e.opts.KeepaliveHeartbeat
	ec.DialKeepAliveTimeout = e.opts.KeepaliveTimeout
	receive := cmp.Or(e.opts.receive, receiveLimit)
	ec.MaxCallSendMsgSize, ec.MaxCallRecvMsgSize = 0, receive
	ec.Context = e.life
	ec.Logger = zap.NewNop()
	ec.DialOptions = []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(e.dialer.DialContext),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(receive), grpc.ForceCodecV2(newAnswerCodec())),
		grpc.WithMaxHeaderListSize(headerLimit),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: e.opts.Timings.BackoffMax / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: e.opts.Timings.BackoffMax,
			},
			MinConnectTimeout: e.opts.Timings.Dial + turnLimit, // the dialer bounds each part
		}),
	}
	ec.DialOptions = append(ec.DialOptions, e.opts.DialOptions...)
	// clientv3.New only uses the context of the whole session (ec.Context).
	undo := context.AfterFunc(ctx, func() { e.end(context.Cause(ctx)) })
	client, err := clientv3.New(ec)
	if !undo() && err == nil {
		_ = client.Close()
		return context.Cause(ctx)
	}
	if err != nil {
		return fromRPC(err)
	}
	e.client = client
	conn := client.ActiveConnection()
	e.kv, e.watch, e.maint = pb.NewKVClient(conn), pb.NewWatchClient(conn), pb.NewMaintenanceClient(conn)
	e.lease, e.auth = pb.NewLeaseClient(conn), pb.NewAuthClient(conn)
	return nil
}

// BootstrapBegins declares that a first sync begins, for example when another user joins the session:
// until BootstrapComplete the rate limit of the first sync applies again. A new session begins in this state.
func (e *Session) BootstrapBegins() { e.limit.set(e.limit.bootstrap) }

// BootstrapComplete declares the first sync complete: from now on the normal rate limit applies.
// The next probe, which confirms the data that was read, is due at once.
func (e *Session) BootstrapComplete() {
	e.limit.set(e.limit.running)
	e.doubts.Notify()
}

// End implements [Session].
func (e *Session) End(why error) { e.end(why) }

// Close implements [kvstore.Client]. If etcd can be reached, locks are free at once, because
// their lease is revoked. The leases of keys expire, so that no key is deleted if the writer
// reconnects in time.
func (e *Session) Close() {
	e.end(kvstore.ErrClosed)
	e.update((*health).closed)
	e.closing.Do(e.closeClient)
}

// closeClient closes the connection in bounded time: closing can block.
func (e *Session) closeClient() {
	if e.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.opts.Timings.Close)
	defer cancel()
	e.Release(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.client.Close()
	}()
	t := time.NewTimer(e.opts.Timings.Close)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// over returns why the session is over; nil while it is open.
func (e *Session) over() error { return context.Cause(e.life) }

// changed ends the session with [kvstore.ErrServerChanged] and returns this error; how describes the evidence.
func (e *Session) changed(how string) error {
	return e.checked(fmt.Errorf("%w: %s", kvstore.ErrServerChanged, how))
}

// linearizable makes a position from the revision of a linearizable read. It cannot be below a
// revision that was known before the read began, unless the server has another history.
func (e *Session) linearizable(before, rev int64) (kvstore.Position, error) {
	if rev < before {
		return kvstore.Position{}, e.changed(fmt.Sprintf("its revision decreased from %d to %d", before, rev))
	}
	e.reached(rev)
	return kvstore.Position{ClusterID: e.pinned.Load(), Revision: rev}, nil
}

// reached records a revision that the server has reached.
func (e *Session) reached(rev int64) {
	for {
		old := e.highest.Load()
		if rev <= old || e.highest.CompareAndSwap(old, rev) {
			return
		}
	}
}

// Open is [Connect] with these options, for users that do not depend on the kind of kvstore.
func (o Options) Open(ctx context.Context, cfg *clientfile.Config, attempt int) (kvstore.Session, error) {
	e, err := Connect(ctx, cfg, attempt, o)
	if err != nil {
		return nil, err // not e, which would be a non-nil interface with a nil pointer
	}
	return e, nil
}

// NewDurable returns a [kvstore.Durable] of sessions with an etcd. It calls load before each
// attempt, so that a changed client file takes effect. The pauses between attempts are longer in
// a larger own cluster ([Options.Stretch]).
func NewDurable(load func() (*clientfile.Config, error), o Options) *kvstore.Durable {
	o.Timings, o.Leases = cmp.Or(o.Timings, DefaultTimings()), cmp.Or(o.Leases, kvstore.NewLeases())
	open := func(ctx context.Context, attempt int) (kvstore.Session, error) {
		cfg, err := load()
		if err != nil {
			return nil, err
		}
		return o.Open(ctx, cfg, attempt)
	}
	return kvstore.NewDurable(open, kvstore.DurableOptions{
		Leases: o.Leases, Wait: o.Timings.Connect, PauseMax: o.Timings.BackoffMax, Stretch: o.Stretch, Hint: hint.Text, Log: o.Log,
	})
}
