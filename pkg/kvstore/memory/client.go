package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

var errBroken = errors.New("the connection was lost")

// Get implements [kvstore.Client].
func (m *Store) Get(ctx context.Context, key string, opts ...kvstore.ReadOption) (*kvstore.KeyValue, kvstore.Position, error) {
	var kv *kvstore.KeyValue
	pos, err := m.operate(ctx, "get", key, func(s *contents) error {
		if err := s.holds(kvstore.HeldLocks(opts)); err != nil {
			return err
		}
		if v, ok := s.items[key]; ok {
			v = clone(v)
			kv = &v
		}
		return nil
	})
	if kv != nil {
		m.lie(key, kv)
	}
	return kv, pos, err
}

// Head implements [kvstore.Client].
func (m *Store) Head(ctx context.Context) (kvstore.Position, error) {
	return m.operate(ctx, "head", "", func(*contents) error { return nil })
}

// List implements [kvstore.Client].
func (m *Store) List(ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption) (kvstore.Position, error) {
	if err := kvstore.CheckSelection("list", prefix, opts); err != nil {
		return kvstore.Position{}, err
	}
	var items []kvstore.KeyValue
	var size int
	at, err := m.operate(ctx, "list", prefix, func(s *contents) error {
		if err := s.holds(kvstore.HeldLocks(opts)); err != nil {
			return err
		}
		items, size = s.snapshot(prefix), m.addr.pageSize
		return nil
	})
	if err != nil {
		return kvstore.Position{}, err
	}
	for rest := range slices.Chunk(items, size) {
		items = items[len(rest):]
		one := kvstore.Page{Items: rest, At: at, Left: int64(len(items))}
		m.lie(prefix, &one)
		if err := page(one); err != nil {
			return kvstore.Position{}, err
		}
		if len(items) == 0 {
			break
		}
		_, err := m.operate(ctx, "page", prefix, func(s *contents) error {
			if err := s.holds(kvstore.HeldLocks(opts)); err != nil {
				return err
			}
			if s.compacted > at.Revision {
				return kvstore.ErrCompacted
			}
			return nil
		})
		if err != nil {
			return kvstore.Position{}, err
		}
	}
	return at, nil
}

// Recall implements [kvstore.Client].
func (m *Store) Recall(
	ctx context.Context, prefix, from string, at kvstore.Position, limit int, opts ...kvstore.SelectOption,
) (kvstore.Past, error) {
	if err := kvstore.CheckSelection("recall", prefix, opts); err != nil {
		return kvstore.Past{}, err
	}
	if at.ClusterID != m.pinned {
		return kvstore.Past{}, hint.Failed("recall", prefix, kvstore.ErrServerChanged)
	}
	var past kvstore.Past
	_, err := m.operate(ctx, "recall", prefix, func(s *contents) error {
		switch {
		case at.Revision > s.rev:
			return kvstore.ErrServerChanged
		case at.Revision < s.compacted:
			return kvstore.ErrCompacted
		}
		items := s.at(at.Revision, prefix).snapshot(prefix)
		items = slices.DeleteFunc(items, func(kv kvstore.KeyValue) bool { return string(kv.Key) < from })
		past = kvstore.Past{Items: items[:min(limit, len(items))], Count: int64(len(items))}
		return nil
	})
	if err == nil {
		m.lie(prefix, &past)
	}
	return past, err
}

// Watch implements [kvstore.Client].
func (m *Store) Watch(ctx context.Context, prefix string, after kvstore.Position, opts ...kvstore.SelectOption) (kvstore.Stream, error) {
	if err := kvstore.CheckSelection("watch", prefix, opts); err != nil {
		return nil, err
	}
	if after.ClusterID != m.pinned {
		return nil, hint.Failed("watch", prefix, kvstore.ErrServerChanged)
	}
	s := &stream{m: m, ctx: ctx, prefix: prefix, next: after.Revision + 1, reached: after.Revision}
	_, err := m.operate(ctx, "watch", prefix, func(st *contents) error {
		s.broken, s.cut = m.addr.broken, m.way().broken
		switch {
		case after.Revision > st.rev:
			m.lose()
			return kvstore.ErrServerChanged
		case s.next < st.compacted:
			return kvstore.ErrCompacted
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Status implements [kvstore.Client].
func (m *Store) Status() kvstore.Status {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	s := m.status
	s.ProbeInterval = m.addr.interval
	s.AgeHeartbeat(time.Now(), heartbeatLimit)
	m.Count(&s)
	return s
}

// Close implements [kvstore.Client]. The leases of locks are revoked.
func (m *Store) Close() {
	m.End(kvstore.ErrClosed)
	m.closing.Do(func() { m.Release(context.Background()) })
}

// End implements [kvstore.Session].
func (m *Store) End(why error) {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.over = cmp.Or(m.over, why)
	m.status.Connected = false
	m.addr.changed()
}

// WaitConnected implements [kvstore.Session].
func (m *Store) WaitConnected(ctx context.Context, want bool) error {
	for {
		m.addr.mu.Lock()
		is, over, wake := m.status.Connected, m.over, m.addr.wake
		m.addr.mu.Unlock()
		switch {
		case is == want, !want && over != nil:
			return nil
		case over != nil:
			return over
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// BootstrapBegins implements [kvstore.Session]. It does nothing: there is no rate limit.
func (m *Store) BootstrapBegins() {}

// BootstrapComplete implements [kvstore.Session]; it does nothing either.
func (m *Store) BootstrapComplete() {}

// Run implements [kvstore.Session], with a fixed interval between probes. Three consecutive
// failures end it.
func (m *Store) Run(ctx context.Context, onProbe func(kvstore.Probe)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.probeLoop(ctx, onProbe) })
	g.Go(func() error { return m.Keep(ctx) })
	return g.Wait()
}

// heartbeatLimit is the age of a heartbeat that is stale, as with etcd.
const heartbeatLimit = 2 * time.Minute

// maxFailures is how many probes may fail in a row.
const maxFailures = 2

func (m *Store) probeLoop(ctx context.Context, onProbe func(kvstore.Probe)) error {
	for failures := 0; ; {
		p := kvstore.Probe{At: time.Now()}
		var heartbeat int64
		p.Head, p.Err = m.operate(ctx, "probe", "", func(s *contents) error {
			heartbeat = s.items[wire.HeartbeatKey].ModRevision
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.note(p, heartbeat)
		if onProbe != nil {
			onProbe(p)
		}
		if failures++; p.Err == nil {
			failures = 0
		}
		switch {
		case errors.Is(p.Err, kvstore.ErrServerChanged), errors.Is(p.Err, kvstore.ErrClosed):
			return p.Err
		case failures > maxFailures:
			return hint.Failed("probe", "", errors.Join(kvstore.ErrQuorumLost, p.Err))
		}
		m.addr.mu.Lock()
		interval := m.addr.interval
		m.addr.mu.Unlock()
		if err := waiting.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

// note records a probe, and the revision of the heartbeat that it has read.
func (m *Store) note(p kvstore.Probe, heartbeat int64) {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	if connected := p.Err == nil; connected != m.status.Connected {
		m.status.Connected = connected
		m.addr.changed()
	}
	m.status.Quorum = p.Err == nil
	if p.Err != nil {
		m.status.ConsecutiveErrors++
		m.status.LastError, m.status.LastErrorAt = p.Err.Error(), time.Now()
		return
	}
	m.status.ConsecutiveErrors = 0
	m.status.Head, m.status.LastSuccess, m.status.Server.AskedAt = p.Head, time.Now(), p.At
	m.status.Heartbeat.Observe(time.Now(), heartbeat)
}

// operate does one operation while it holds the mutex, after the fault and the checks of each response.
func (m *Store) operate(ctx context.Context, op, key string, f func(*contents) error) (kvstore.Position, error) {
	pos, err := m.tryOperate(ctx, op, key, f)
	if err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return kvstore.Position{}, cerr
		}
		return kvstore.Position{}, hint.Failed(op, key, err)
	}
	return pos, nil
}

func (m *Store) tryOperate(ctx context.Context, op, key string, f func(*contents) error) (kvstore.Position, error) {
	later := m.failing(ctx, op, key)
	if s, is := errors.AsType[*stray](later); is {
		go m.executeStray(s, f)
		return kvstore.Position{}, s.error
	}
	_, after := errors.AsType[*afterwards](later)
	if _, late := errors.AsType[delayed](later); later != nil && !after && !late {
		return kvstore.Position{}, later
	}
	if err := ctx.Err(); err != nil {
		return kvstore.Position{}, err
	}
	pos, err := m.execute(f)
	if err != nil && pos == (kvstore.Position{}) {
		return pos, err
	}
	return pos, cmp.Or(err, arrive(ctx, later))
}

func (m *Store) executeStray(s *stray, f func(*contents) error) {
	<-s.arrives
	m.addr.mu.Lock()
	same := m.addr.store.id == m.pinned
	if same {
		_ = f(m.addr.store) // its client no longer waits for the answer
	}
	m.addr.mu.Unlock()
	if same {
		s.executed()
	}
}

// execute does one operation. Without a position it was not done.
func (m *Store) execute(f func(*contents) error) (kvstore.Position, error) {
	a := m.addr
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.over == nil && (a.store.id != m.pinned || a.store.rev < m.highest) {
		m.lose()
	}
	if m.over != nil {
		return kvstore.Position{}, m.over
	}
	err := f(a.store)
	m.highest = a.store.rev
	return kvstore.Position{ClusterID: a.store.id, Revision: a.store.rev}, err
}

// failing calls the faults.
func (m *Store) failing(ctx context.Context, op, key string) error {
	var faults [2]Fault
	m.addr.locked(func(a *address) {
		faults[0] = a.fault
		if m.route != nil {
			faults[1] = m.route.fault
		}
	})
	for _, fault := range faults {
		if fault == nil {
			continue
		}
		if err := fault(ctx, op, key); err != nil {
			return err
		}
	}
	return nil
}

// lose ends the session because another server answers; the mutex is held.
func (m *Store) lose() {
	m.over = kvstore.ErrServerChanged
	m.status.Connected, m.status.Quorum = false, false
	m.addr.changed()
	m.status.LastError, m.status.LastErrorAt = kvstore.ErrServerChanged.Error(), time.Now()
}

func (s *contents) holds(locks []*kvstore.Lock) error {
	for _, l := range locks {
		if s.created[l.Key] != l.Revision {
			return l.MarkLost()
		}
	}
	return nil
}

// at returns the contents of a prefix at an earlier revision that is not compacted.
func (s *contents) at(rev int64, prefix string) *contents {
	if rev == s.rev {
		return s
	}
	then := &contents{items: make(map[string]kvstore.KeyValue)}
	for i := range s.history {
		switch e := &s.history[i]; {
		case e.ModRevision > rev:
			return then
		case !selects(prefix, e.Key):
		case e.Type == kvstore.EventDelete:
			delete(then.items, string(e.Key))
		default:
			then.items[string(e.Key)] = e.KeyValue
		}
	}
	return then
}

// selects is [kvstore.Selects] without a copy of the key.
func selects(selection string, key []byte) bool {
	return len(key) >= len(selection) && string(key[:len(selection)]) == selection && kvstore.Selects(selection, string(key))
}

func (s *contents) snapshot(prefix string) []kvstore.KeyValue {
	var items []kvstore.KeyValue
	for k, v := range s.items {
		if kvstore.Selects(prefix, k) {
			items = append(items, clone(v))
		}
	}
	slices.SortFunc(items, func(a, b kvstore.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return items
}

func clone(kv kvstore.KeyValue) kvstore.KeyValue {
	kv.Key, kv.Value = slices.Clone(kv.Key), slices.Clone(kv.Value)
	return kv
}
