package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// Watch implements [kvstore.Client].
func (e *Session) Watch(ctx context.Context, prefix string, after kvstore.Position, opts ...kvstore.SelectOption) (kvstore.Stream, error) {
	if err := kvstore.CheckSelection("watch", prefix, opts); err != nil {
		return nil, err
	}
	if after.ClusterID != e.pinned.Load() {
		return nil, hint.Failed("watch", prefix, e.foreign(after))
	}
	var st kvstore.Stream
	// Once the watch is open, it no longer counts as an operation in progress.
	err := e.operate(ctx, "watch", prefix, 0, func(context.Context) (err error) {
		st, err = e.stream(ctx, prefix, after)
		return err
	})
	return st, err
}

// WatchNow implements [kvstore.Engine].
func (e *Session) WatchNow(ctx context.Context, key string, after kvstore.Position) (kvstore.Stream, error) {
	return e.stream(ctx, key, after)
}

func (e *Session) stream(ctx context.Context, selection string, after kvstore.Position) (kvstore.Stream, error) {
	st, err := e.openStream(ctx, selection, after)
	if err != nil {
		return nil, err // not st, which would be a non-nil interface with a nil pointer
	}
	return st, nil
}

// stream is a raw watch: one gRPC stream for one watcher. It reads from the network only in Recv.
type stream struct {
	e      *Session
	prefix string
	scope  *scope
	grpc   pb.Watch_WatchClient
	send   sync.Mutex // one sender at a time

	id   int64            // of the watch, as confirmed
	at   kvstore.Position // the reached position; only Recv uses it
	last int64            // revision of the latest event; only Recv uses it
	err  error            // why the stream has ended; only Recv uses it
}

func (e *Session) openStream(ctx context.Context, prefix string, after kvstore.Position) (*stream, error) {
	st := &stream{e: e, prefix: prefix, at: after}
	st.scope = e.scope(ctx, "opening the watch", e.opts.Timings.WatchOpen)
	err := st.open(after.Revision + 1)
	if err == nil && !st.scope.timer.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		err = e.explain(st.scope, "watch", prefix, err)
		st.scope.close()
		return nil, err
	}
	return st, nil
}

func (s *stream) open(from int64) error {
	ctx := metadata.AppendToOutgoingContext(s.scope.ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
	var err error
	if s.grpc, err = s.e.watch.Watch(ctx); err != nil {
		return err
	}
	err = s.grpc.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(s.prefix), RangeEnd: []byte(kvstore.SelectionEnd(s.prefix)), StartRevision: from, Fragment: true,
	}}})
	if err != nil {
		_, reason := s.grpc.Recv()
		return cmp.Or(reason, err) // Send returns only io.EOF
	}
	resp, err := s.grpc.Recv()
	if err != nil {
		return s.e.atLeast("the confirmation of a watch", err)
	}
	if err := s.refused(resp); err != nil {
		return err
	}
	if !resp.GetCreated() || len(resp.Events) > 0 {
		return s.e.checked(violated("a watch was answered with something else than a confirmation (watch ID %d)", resp.GetWatchId()))
	}
	s.id = resp.WatchId
	return s.reaches(from-1, resp.GetHeader().GetRevision())
}

// reaches checks that the server's history includes a revision. The member that answered may
// be behind; a linearizable read is not.
func (s *stream) reaches(rev, member int64) error {
	if rev <= s.e.highest.Load() && rev <= member {
		return nil
	}
	at, err := s.e.head(s.scope.ctx, s.e.opts.Timings.Read)
	if ke, is := errors.AsType[*kvstore.KeyError](err); is {
		return ke.Err // the new KeyError is about the watch
	}
	if err != nil {
		return err
	}
	if at.Revision < rev {
		return s.e.changed(fmt.Sprintf("it is at revision %d and has never reached %d", at.Revision, rev))
	}
	return nil
}

// refused returns the reason if a response ends the watch; otherwise nil.
func (s *stream) refused(r *pb.WatchResponse) error {
	if err := s.e.check(r.GetHeader()); err != nil {
		return err
	}
	switch {
	case r.GetCompactRevision() != 0:
		return &serverError{
			text: fmt.Sprintf("%v up to %d, and revision %d is wanted", kvstore.ErrCompacted, r.GetCompactRevision(), s.at.Revision+1),
			kind: kvstore.ErrCompacted, err: rpctypes.ErrCompacted,
		}
	case r.GetCanceled():
		return fromReason(r.GetCancelReason())
	default:
		return s.e.checkRevision(r.GetHeader()) // a response about a compaction has no revision
	}
}

// Recv implements [kvstore.Stream].
func (s *stream) Recv() (kvstore.Batch, error) {
	if s.err != nil {
		return kvstore.Batch{}, s.err
	}
	b, err := s.recv()
	if err != nil {
		if s.scope.ctx.Err() == nil {
			s.e.doubts.Notify()
		}
		s.err = s.e.explain(s.scope, "watch", s.prefix, err)
		s.scope.close()
		return kvstore.Batch{}, s.err
	}
	return b, nil
}

func (s *stream) recv() (kvstore.Batch, error) {
	resp, err := s.grpc.Recv()
	if err != nil {
		return kvstore.Batch{}, s.e.atLeast("a fragment of a watch", err)
	}
	if err := s.refused(resp); err != nil {
		return kvstore.Batch{}, err
	}
	if err := s.e.checked(s.checkBatch(resp)); err != nil {
		return kvstore.Batch{}, err
	}
	return s.batch(resp), nil
}

// checkBatch checks a response of a confirmed watch.
func (s *stream) checkBatch(r *pb.WatchResponse) error {
	switch {
	case r.Created:
		return violated("a watch was confirmed twice")
	case len(r.Events) > 0 && r.WatchId != s.id:
		return violated("an event is of watch ID %d, this one has %d", r.WatchId, s.id)
	}
	return checkEvents(r.Events, []byte(s.prefix), []byte(kvstore.SelectionEnd(s.prefix)), s.at.Revision, s.last, r.Header.Revision)
}

// batch converts a response and advances the position. The header's revision counts only in an
// answer about progress: while a watcher catches up, that revision is ahead of the events.
func (s *stream) batch(r *pb.WatchResponse) kvstore.Batch {
	b := kvstore.Batch{Events: make([]kvstore.Event, len(r.Events)), Partial: r.GetFragment()}
	for i, ev := range r.Events {
		b.Events[i] = fromPBEvent(ev)
	}
	reached := r.GetHeader().GetRevision()
	if n := len(b.Events); n > 0 {
		reached = b.Events[n-1].ModRevision
		s.last = reached
	}
	s.e.reached(reached)
	if !b.Partial && reached > s.at.Revision {
		s.at.Revision = reached
	}
	b.At = s.at
	return b
}

func fromPBEvent(ev *mvccpb.Event) kvstore.Event {
	e := kvstore.Event{KeyValue: fromPB(ev.Kv), Created: ev.IsCreate()}
	if ev.Type == mvccpb.Event_DELETE {
		e.Type, e.Value, e.Lease = kvstore.EventDelete, nil, 0
	}
	return e
}

// RequestProgress implements [kvstore.Stream].
func (s *stream) RequestProgress() error {
	if !s.e.progress.Load() {
		return hint.Failed("progress", s.prefix, kvstore.ErrProgressUnreliable)
	}
	s.send.Lock()
	defer s.send.Unlock()
	err := s.grpc.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	if err != nil {
		return s.e.explain(s.scope, "progress", s.prefix, err)
	}
	return nil
}

// Close implements [kvstore.Stream].
func (s *stream) Close() {
	s.scope.cancel(kvstore.ErrClosed)
	s.scope.close()
}
