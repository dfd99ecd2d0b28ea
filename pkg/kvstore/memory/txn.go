package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// Transact implements [kvstore.Engine].
func (m *Store) Transact(ctx context.Context, t kvstore.Transaction) (kvstore.TxnResult, kvstore.Position, error) {
	var res kvstore.TxnResult
	at, err := m.operate(ctx, t.Op, t.Key, func(s *contents) error {
		if err := s.mayApply(t.Txn); err != nil {
			return err
		}
		var events []kvstore.Event
		res, events = s.apply(t.Txn)
		if len(events) > 0 {
			s.write(events)
			m.addr.changed()
		}
		return nil
	})
	if err == nil {
		if lost := t.Lost(res); lost != nil {
			err = hint.Failed(t.Op, t.Key, lost)
		}
	}
	if err != nil {
		return kvstore.TxnResult{}, kvstore.Position{}, err
	}
	return res, at, nil
}

// mayApply checks that all leases exist, before the transaction changes anything.
func (s *contents) mayApply(txn kvstore.Txn) error {
	for _, op := range slices.Concat(txn.Then, txn.Else) {
		if op.Kind == kvstore.OpPut && op.Lease != 0 && s.leases[op.Lease] == nil {
			return kvstore.ErrLeaseNotFound
		}
		if op.Kind == kvstore.OpTxn {
			if err := s.mayApply(*op.Txn); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply evaluates a transaction; the events are its changes, which the caller writes.
func (s *contents) apply(txn kvstore.Txn) (kvstore.TxnResult, []kvstore.Event) {
	res := kvstore.TxnResult{Succeeded: true}
	for _, c := range txn.If {
		res.Succeeded = res.Succeeded && s.meets(c)
	}
	ops := txn.Then
	if !res.Succeeded {
		ops = txn.Else
	}
	var events []kvstore.Event
	for _, op := range ops {
		part, changes := s.do(op)
		res.Parts = append(res.Parts, part)
		events = append(events, changes...)
	}
	return res, events
}

func (s *contents) do(op kvstore.TxnOp) (kvstore.PartResult, []kvstore.Event) {
	res := kvstore.PartResult{Kind: op.Kind}
	var events []kvstore.Event
	switch op.Kind {
	case kvstore.OpPut:
		events = []kvstore.Event{{KeyValue: kvstore.KeyValue{Key: []byte(op.Key), Value: op.Value, Lease: op.Lease}}}
	case kvstore.OpDelete:
		for _, key := range s.between(op.Key, op.End) {
			events = append(events, deletion(key))
		}
		res.Deleted = int64(len(events))
	case kvstore.OpTxn:
		inner, changes := s.apply(*op.Txn)
		res.Txn, events = &inner, changes
	case kvstore.OpRead:
		for _, key := range s.between(op.Key, op.End) {
			if created := s.created[key]; op.MaxCreated == 0 || created <= op.MaxCreated {
				res.Found = append(res.Found, kvstore.Found{KeyValue: s.items[key], Created: created})
			}
		}
	}
	return res, events
}

// between returns the sorted keys from the first to before end; with an empty end only the first key.
func (s *contents) between(key, end string) []string {
	if end == "" {
		if _, ok := s.items[key]; ok {
			return []string{key}
		}
		return nil
	}
	var keys []string
	for k := range s.items {
		if k >= key && k < end {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// meets reports whether a condition holds. All numbers of an absent key are 0.
func (s *contents) meets(c kvstore.Condition) bool {
	kv, exists := s.items[c.Key]
	switch c.Kind {
	case kvstore.ValueIs:
		return exists && bytes.Equal(kv.Value, c.Value)
	case kvstore.CreatedAt:
		return s.created[c.Key] == c.Number
	case kvstore.ChangedAt:
		return kv.ModRevision == c.Number
	case kvstore.LeaseIs:
		return kv.Lease == c.Number
	case kvstore.Exists:
		return exists
	default:
		panic(fmt.Sprintf("there is no condition %d", c.Kind))
	}
}

// Afterwards makes an error of a [Fault] with which an operation fails after it was
// executed: its caller does not know the outcome.
func Afterwards(err error) error { return &afterwards{err} }

type afterwards struct{ error }

func (a *afterwards) Unwrap() error { return a.error }

// Stray makes an error with which an operation fails at once, although the server executes it when arrives is closed, unless
// it was replaced: the request was under way when its client stopped waiting, or ended. Then executed is called.
func Stray(arrives <-chan struct{}, executed func(), err error) error {
	return &stray{err, arrives, executed}
}

type stray struct {
	error
	arrives  <-chan struct{}
	executed func()
}

func (s *stray) Unwrap() error { return s.error }

// Delayed makes an error of a [Fault] with which an operation is executed, and its answer comes only after this time.
func Delayed(by time.Duration) error { return delayed(by) }

type delayed time.Duration

func (d delayed) Error() string { return "the answer comes " + time.Duration(d).String() + " later" }

// arrive waits until a delayed answer arrives, or ctx ends, and returns the error without the delay.
func arrive(ctx context.Context, err error) error {
	d, late := errors.AsType[delayed](err)
	if !late {
		return err
	}
	return waiting.Sleep(ctx, time.Duration(d))
}

// LeaseTTL is the TTL of all leases, unless [Store.ExpireAfter] sets another. With it a Store's sessions keep their
// leases alive three times a second.
const LeaseTTL = time.Second

// ExpireAfter makes leases end because of time: when the TTL that they were granted with has passed since they were
// granted or last kept alive. Sessions that begin afterwards ask for these TTLs. Without it the server ends no lease
// because of time.
func (m *Store) ExpireAfter(leases, locks time.Duration) {
	m.addr.locked(func(a *address) { a.ttl, a.lockTTL, a.expire = leases, locks, true })
}

// WatchNow implements [kvstore.Engine].
func (m *Store) WatchNow(ctx context.Context, key string, after kvstore.Position) (kvstore.Stream, error) {
	return m.Watch(ctx, key, after, kvstore.OneKey())
}

// Grant implements [kvstore.Lessor].
func (m *Store) Grant(ctx context.Context, ttl time.Duration) (id int64, lasts time.Duration, err error) {
	_, err = m.operate(ctx, "grant lease", "", func(s *contents) error {
		m.addr.nextLease++
		id = m.addr.nextLease
		s.leases[id] = m.addr.newLease(id, ttl)
		return nil
	})
	return id, ttl, err
}

// KeepAlive implements [kvstore.Lessor].
func (m *Store) KeepAlive(ctx context.Context, ids []int64) (map[int64]bool, error) {
	alive := make(map[int64]bool)
	_, err := m.operate(ctx, "keep leases alive", "", func(s *contents) error {
		for _, id := range ids {
			l := s.leases[id]
			if alive[id] = l != nil; l != nil {
				l.until = time.Now().Add(l.ttl)
			}
		}
		return nil
	})
	return alive, err
}

// lease is a lease that has not ended.
type lease struct {
	ttl   time.Duration
	until time.Time
}

// newLease returns a lease that ends because of time, if leases do. The caller holds the mutex.
func (a *address) newLease(id int64, ttl time.Duration) *lease {
	l := &lease{ttl, time.Now().Add(ttl)}
	if a.expire {
		time.AfterFunc(ttl, func() { a.locked(func(a *address) { a.expired(id, l) }) })
	}
	return l
}

// expired ends a lease, or looks again later if it was kept alive meanwhile. The caller holds the mutex.
func (a *address) expired(id int64, l *lease) {
	switch left := time.Until(l.until); {
	case a.store.leases[id] != l: // it has ended, or the server was replaced
	case left > 0:
		time.AfterFunc(left, func() { a.locked(func(a *address) { a.expired(id, l) }) })
	default:
		a.revoke(id)
	}
}

// Revoke implements [kvstore.Lessor]. It also works after the session is over.
func (m *Store) Revoke(_ context.Context, id int64) error {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	if m.addr.store.id == m.pinned {
		m.addr.revoke(id)
	}
	return nil
}

// ExpireLeases ends all leases of all sessions, as if their TTL had passed, and deletes
// the keys that are tied to them.
func (m *Store) ExpireLeases() {
	m.addr.mu.Lock()
	defer m.addr.mu.Unlock()
	m.addr.revoke(slices.Collect(maps.Keys(m.addr.store.leases))...)
}

// revoke ends leases; the mutex is held.
func (a *address) revoke(ids ...int64) {
	for _, id := range ids {
		delete(a.store.leases, id)
	}
	var events []kvstore.Event
	for _, key := range slices.Sorted(maps.Keys(a.store.items)) {
		if slices.Contains(ids, a.store.items[key].Lease) {
			events = append(events, deletion(key))
		}
	}
	a.store.write(events)
	a.changed()
}
