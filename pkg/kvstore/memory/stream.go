package memory

import (
	"cmp"
	"context"
	"errors"
	"sort"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// batchRevisions is the maximum number of revisions in one batch.
const batchRevisions = 100

// stream is a watch on a Store. It pulls from the server's history.
type stream struct {
	m      *Store
	ctx    context.Context
	prefix string
	// The numbers of cuts, of all connections and of the route, when the stream was opened.
	broken, cut int

	// Guarded by addr.mu.
	next     int64         // the first revision that was not yet delivered
	rest     kvstore.Batch // what follows a part of a batch; no events: nothing
	reached  int64         // the position of the last whole batch
	progress bool          // an answer is pending
	err      error         // why the stream is over; never reset
}

// Recv implements [kvstore.Stream].
func (s *stream) Recv() (kvstore.Batch, error) {
	b, err := s.recv()
	if err == nil {
		s.m.lie(s.prefix, &b)
		return b, nil
	}
	a := s.m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	s.err = cmp.Or(s.err, s.ctx.Err(), hint.Failed("watch", s.prefix, err))
	return kvstore.Batch{}, s.err
}

func (s *stream) recv() (kvstore.Batch, error) {
	a := s.m.addr
	later := s.m.failing(s.ctx, "recv", s.prefix)
	if _, late := errors.AsType[delayed](later); later != nil && !late {
		return kvstore.Batch{}, later
	}
	for {
		a.mu.Lock()
		b, ok, err := s.take()
		wake := a.wake
		a.mu.Unlock()
		if ok || err != nil {
			return b, cmp.Or(err, arrive(s.ctx, later))
		}
		select {
		case <-wake:
		case <-s.ctx.Done():
			return kvstore.Batch{}, s.ctx.Err()
		}
	}
}

// take returns the next batch, if there is one. The mutex is held.
func (s *stream) take() (kvstore.Batch, bool, error) {
	a := s.m.addr
	switch {
	case s.err != nil:
		return kvstore.Batch{}, false, s.err
	case s.ctx.Err() != nil:
		return kvstore.Batch{}, false, s.ctx.Err()
	case s.m.over != nil:
		return kvstore.Batch{}, false, s.m.over
	case s.broken != a.broken:
		return kvstore.Batch{}, false, a.breakErr
	case s.cut != s.m.way().broken:
		return kvstore.Batch{}, false, s.m.way().breakErr
	case s.next < a.store.compacted:
		return kvstore.Batch{}, false, kvstore.ErrCompacted
	}
	if len(s.rest.Events) > 0 {
		return s.part(s.rest), true, nil
	}
	if b, ok := s.events(a.store); ok {
		return s.part(b), true, nil
	}
	s.next = a.store.rev + 1
	if s.progress {
		s.progress, s.reached = false, a.store.rev
		return kvstore.Batch{At: kvstore.Position{ClusterID: a.store.id, Revision: a.store.rev}}, true, nil
	}
	return kvstore.Batch{}, false, nil
}

// part returns the next part of a batch, and keeps the others.
func (s *stream) part(b kvstore.Batch) kvstore.Batch {
	n := s.m.addr.fragment
	if n == 0 || len(b.Events) <= n {
		s.rest, s.reached = kvstore.Batch{}, b.At.Revision
		return b
	}
	s.rest = kvstore.Batch{Events: b.Events[n:], At: b.At}
	return kvstore.Batch{Events: b.Events[:n:n], At: kvstore.Position{ClusterID: b.At.ClusterID, Revision: s.reached}, Partial: true}
}

func (s *stream) events(st *contents) (kvstore.Batch, bool) {
	first := sort.Search(len(st.history), func(i int) bool { return st.history[i].ModRevision >= s.next })
	var b kvstore.Batch
	revs, last := 0, int64(0)
	for i := range st.history[first:] {
		e := &st.history[first+i]
		if !selects(s.prefix, e.Key) {
			continue
		}
		if e.ModRevision != last {
			if revs == batchRevisions {
				break
			}
			revs, last = revs+1, e.ModRevision
		}
		b.Events = append(b.Events, kvstore.Event{Type: e.Type, Created: e.Created, KeyValue: clone(e.KeyValue)})
	}
	if len(b.Events) == 0 {
		return b, false
	}
	s.next = last + 1
	b.At = kvstore.Position{ClusterID: st.id, Revision: last}
	s.m.highest = max(s.m.highest, last)
	return b, true
}

// RequestProgress implements [kvstore.Stream].
func (s *stream) RequestProgress() error {
	a := s.m.addr
	if err := s.m.failing(s.ctx, "progress", s.prefix); err != nil {
		return hint.Failed("progress", s.prefix, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.progress = true
	a.changed()
	return nil
}

// Close implements [kvstore.Stream].
func (s *stream) Close() {
	a := s.m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.err == nil {
		s.err = hint.Failed("watch", s.prefix, kvstore.ErrClosed)
		a.changed()
	}
}
