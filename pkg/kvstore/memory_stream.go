package kvstore

import (
	"context"
	"sort"
)

// memBatch is how many revisions are put into one batch, at most.
const memBatch = 100

// memStream is a watch on a Memory. It pulls from the server's history.
type memStream struct {
	m      *Memory
	ctx    context.Context
	prefix string
	broken int // the value of addr.broken when the stream was opened

	// Guarded by addr.mu.
	next     int64 // the first revision that was not yet delivered
	progress bool  // an answer is owed
	err      error // why the stream is over; sticky
}

// Recv implements [Stream].
func (s *memStream) Recv() (Batch, error) {
	b, err := s.recv()
	if err == nil {
		return b, nil
	}
	a := s.m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.err == nil {
		if s.err = s.ctx.Err(); s.err == nil {
			s.err = &KeyError{"watch", s.prefix, err}
		}
	}
	return Batch{}, s.err
}

func (s *memStream) recv() (Batch, error) {
	a := s.m.addr
	a.mu.Lock()
	fault := a.fault
	a.mu.Unlock()
	if fault != nil {
		if err := fault(s.ctx, "recv", s.prefix); err != nil {
			return Batch{}, err
		}
	}
	for {
		a.mu.Lock()
		b, ok, err := s.take()
		wake := a.wake
		a.mu.Unlock()
		if ok || err != nil {
			return b, err
		}
		select {
		case <-wake:
		case <-s.ctx.Done():
			return Batch{}, s.ctx.Err()
		}
	}
}

// take returns the next batch, if there is one. The lock is held.
func (s *memStream) take() (Batch, bool, error) {
	a := s.m.addr
	switch {
	case s.err != nil:
		return Batch{}, false, s.err
	case s.ctx.Err() != nil:
		return Batch{}, false, s.ctx.Err()
	case s.m.over != nil:
		return Batch{}, false, s.m.over
	case s.broken != a.broken:
		return Batch{}, false, a.breakErr
	case s.next < a.store.compacted:
		return Batch{}, false, ErrCompacted
	}
	if b, ok := s.events(a.store); ok {
		return b, true, nil
	}
	s.next = a.store.rev + 1
	if s.progress {
		s.progress = false
		return Batch{At: Position{a.store.id, a.store.rev}}, true, nil
	}
	return Batch{}, false, nil
}

func (s *memStream) events(st *memStore) (Batch, bool) {
	first := sort.Search(len(st.history), func(i int) bool { return st.history[i].ModRevision >= s.next })
	var b Batch
	revs, last := 0, int64(0)
	for _, e := range st.history[first:] {
		if !selects(s.prefix, string(e.Key)) {
			continue
		}
		if e.ModRevision != last {
			if revs == memBatch {
				break
			}
			revs, last = revs+1, e.ModRevision
		}
		b.Events = append(b.Events, Event{Type: e.Type, Created: e.Created, KeyValue: e.clone()})
	}
	if len(b.Events) == 0 {
		return b, false
	}
	s.next = last + 1
	b.At = Position{st.id, last}
	s.m.highest = max(s.m.highest, last)
	return b, true
}

// RequestProgress implements [Stream].
func (s *memStream) RequestProgress() error {
	a := s.m.addr
	a.mu.Lock()
	fault := a.fault
	a.mu.Unlock()
	if fault != nil {
		if err := fault(s.ctx, "progress", s.prefix); err != nil {
			return &KeyError{"progress", s.prefix, err}
		}
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

// Close implements [Stream].
func (s *memStream) Close() {
	a := s.m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.err == nil {
		s.err = &KeyError{"watch", s.prefix, ErrClosed}
		a.changed()
	}
}
