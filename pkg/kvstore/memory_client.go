package kvstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
)

var errMemoryBroken = errors.New("the connection was lost")

// Get implements [Client].
func (m *Memory) Get(ctx context.Context, key string, holding ...*Lock) (*KeyValue, Position, error) {
	var kv *KeyValue
	pos, err := m.operate(ctx, "get", key, func(s *memStore) error {
		if err := s.holds(holding); err != nil {
			return err
		}
		if v, ok := s.items[key]; ok {
			v = v.clone()
			kv = &v
		}
		return nil
	})
	if err != nil {
		return nil, Position{}, err
	}
	return kv, pos, nil
}

// Head implements [Client].
func (m *Memory) Head(ctx context.Context) (Position, error) {
	return m.operate(ctx, "head", "", func(*memStore) error { return nil })
}

// List implements [Client].
func (m *Memory) List(ctx context.Context, prefix string, page func(Page) error, holding ...*Lock) (Position, error) {
	var items []KeyValue
	var size int
	at, err := m.operate(ctx, "list", prefix, func(s *memStore) error {
		if err := s.holds(holding); err != nil {
			return err
		}
		items, size = s.snapshot(prefix), m.addr.pageSize
		return nil
	})
	if err != nil {
		return Position{}, err
	}
	for len(items) > 0 {
		n := min(size, len(items))
		if err := page(Page{Items: items[:n:n], At: at, Left: int64(len(items) - n)}); err != nil {
			return Position{}, err
		}
		if items = items[n:]; len(items) == 0 {
			break
		}
		_, err := m.operate(ctx, "page", prefix, func(s *memStore) error {
			if err := s.holds(holding); err != nil {
				return err
			}
			if s.compacted > at.Revision {
				return ErrCompacted
			}
			return nil
		})
		if err != nil {
			return Position{}, err
		}
	}
	return at, nil
}

// Recall implements [Client].
func (m *Memory) Recall(ctx context.Context, prefix, from string, at Position, limit int) (Past, error) {
	if at.ClusterID != m.pinned {
		return Past{}, &KeyError{"recall", prefix, ErrServerChanged}
	}
	var past Past
	_, err := m.operate(ctx, "recall", prefix, func(s *memStore) error {
		switch {
		case at.Revision > s.rev:
			return ErrServerChanged
		case at.Revision < s.compacted:
			return ErrCompacted
		}
		items := s.at(at.Revision).snapshot(prefix)
		items = slices.DeleteFunc(items, func(kv KeyValue) bool { return string(kv.Key) < from })
		past = Past{Items: items[:min(limit, len(items))], Count: int64(len(items))}
		return nil
	})
	if err != nil {
		return Past{}, err
	}
	return past, nil
}

// Watch implements [Client].
func (m *Memory) Watch(ctx context.Context, prefix string, after Position) (Stream, error) {
	if after.ClusterID != m.pinned {
		return nil, &KeyError{"watch", prefix, ErrServerChanged}
	}
	s := &memStream{m: m, ctx: ctx, prefix: prefix, next: after.Revision + 1}
	_, err := m.operate(ctx, "watch", prefix, func(st *memStore) error {
		s.broken = m.addr.broken
		switch {
		case after.Revision > st.rev:
			m.lose()
			return ErrServerChanged
		case s.next < st.compacted:
			return ErrCompacted
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Status implements [Client].
func (m *Memory) Status() Status {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	s := m.status
	s.Leases, s.LockLeases, s.Locks = m.leases.number(), m.locks.number(), m.held.number()
	return s
}

// Close implements [Client]. The leases of locks are revoked.
func (m *Memory) Close() {
	if m.closed() {
		m.end(context.Background())
	}
}

// closed ends the session and tells whether it had not been closed before.
func (m *Memory) closed() bool {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	if errors.Is(m.over, ErrClosed) {
		return false
	}
	m.over = ErrClosed
	m.status.Connected = false
	m.addr.changed()
	return true
}

// BootstrapBegins does nothing: a memory has no rate limit.
func (m *Memory) BootstrapBegins() {}

// BootstrapComplete does nothing either.
func (m *Memory) BootstrapComplete() {}

// Run probes the server as [Etcd.Run] does, with a fixed interval, until the
// context or the session ends. Three failures in a row end it. It also keeps
// leases alive.
func (m *Memory) Run(ctx context.Context, onProbe func(Probe)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.probeLoop(ctx, onProbe) })
	g.Go(func() error { return m.run(ctx) })
	return g.Wait()
}

func (m *Memory) probeLoop(ctx context.Context, onProbe func(Probe)) error {
	for failed := 0; ; {
		p := Probe{At: time.Now()}
		p.Head, p.Err = m.operate(ctx, "probe", "", func(*memStore) error { return nil })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.note(p)
		if onProbe != nil {
			onProbe(p)
		}
		if failed++; p.Err == nil {
			failed = 0
		}
		switch {
		case errors.Is(p.Err, ErrServerChanged), errors.Is(p.Err, ErrClosed):
			return p.Err
		case failed > defaultMaxQuorumErrors:
			return &KeyError{"probe", "", errors.Join(ErrQuorumLost, p.Err)}
		}
		m.addr.mu.Lock()
		interval := m.addr.interval
		m.addr.mu.Unlock()
		if err := waiting.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

func (m *Memory) note(p Probe) {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.status.Quorum = p.Err == nil
	m.status.Connected = p.Err == nil
	if p.Err != nil {
		m.status.ConsecutiveErrors++
		m.status.LastError, m.status.LastErrorAt = p.Err.Error(), time.Now()
		return
	}
	m.status.ConsecutiveErrors = 0
	m.status.Head, m.status.LastSuccess = p.Head, time.Now()
}

// operate does one operation under the lock, after the fault and the checks that
// each response of a server undergoes.
func (m *Memory) operate(ctx context.Context, op, key string, f func(*memStore) error) (Position, error) {
	pos, err := m.tryOperate(ctx, op, key, f)
	if err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return Position{}, cerr
		}
		return Position{}, &KeyError{op, key, err}
	}
	return pos, nil
}

func (m *Memory) tryOperate(ctx context.Context, op, key string, f func(*memStore) error) (Position, error) {
	a := m.addr
	a.mu.Lock()
	fault := a.fault
	a.mu.Unlock()
	var later error
	if fault != nil {
		err := fault(ctx, op, key)
		if err != nil && !comesAfter(err) {
			return Position{}, err
		}
		later = err
	}
	if err := ctx.Err(); err != nil {
		return Position{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.over == nil && (a.store.id != m.pinned || a.store.rev < m.highest) {
		m.lose()
	}
	if m.over != nil {
		return Position{}, m.over
	}
	err := f(a.store)
	m.highest = a.store.rev
	return Position{a.store.id, a.store.rev}, cmp.Or(err, later)
}

// lose ends the session because another server answers. The lock is held.
func (m *Memory) lose() {
	m.over = ErrServerChanged
	m.status.Connected, m.status.Quorum = false, false
	m.status.LastError, m.status.LastErrorAt = ErrServerChanged.Error(), time.Now()
}

// holds returns an error unless the locks are held; nil locks are none.
func (s *memStore) holds(locks []*Lock) error {
	for _, l := range locks {
		if l != nil && s.created[l.Key] != l.Revision {
			return l.NotHeld()
		}
	}
	return nil
}

// at returns the contents at an earlier revision that is not compacted.
func (s *memStore) at(rev int64) *memStore {
	then := &memStore{items: make(map[string]KeyValue)}
	for _, e := range s.history {
		switch {
		case e.ModRevision > rev:
		case e.Type == EventDelete:
			delete(then.items, string(e.Key))
		default:
			then.items[string(e.Key)] = e.KeyValue
		}
	}
	return then
}

func (s *memStore) snapshot(prefix string) []KeyValue {
	var items []KeyValue
	for k, v := range s.items {
		if selects(prefix, k) {
			items = append(items, v.clone())
		}
	}
	slices.SortFunc(items, func(a, b KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return items
}

func (kv KeyValue) clone() KeyValue {
	kv.Key, kv.Value = slices.Clone(kv.Key), slices.Clone(kv.Value)
	return kv
}
