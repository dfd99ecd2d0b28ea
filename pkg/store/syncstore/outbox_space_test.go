package syncstore

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// lean starts a Sync that holds no values, and requests them from an owner.
func (d *desk) lean(prefix string, owner map[string]string, p Params) *Sync {
	var s *Sync
	ready := make(chan struct{})
	p.Prefix = prefix
	p.Again = func(names []string) {
		go func() {
			<-ready
			for _, name := range names {
				s.Supply(name, []byte(owner[name]))
			}
		}()
	}
	s = d.sync(p)
	close(ready)
	return s
}

// TestNothingIsPutBeyondTheGrant: after the grant is used up, only deletions and vital puts are acknowledged, and no
// value is held. After another grant everything is put.
func TestNothingIsPutBeyondTheGrant(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	const prefix, keys = "cilium/state/x/v1/c1/", 2000
	d.mem.Set(prefix+"old", "x")
	all := map[string]string{}
	value := strings.Repeat("v", 1000)
	one := part{name: "0000", value: []byte(value)}
	grant := 300 * one.cost(len(prefix))
	d.outbox.Grant(grant)
	s := d.lean(prefix, all, Params{})
	vital := d.sync(Params{Prefix: "cilium/state/y/v1/c1/", Vital: true})
	for i := range keys {
		all[fmt.Sprintf("%04d", i)] = value
	}
	for name := range all {
		s.Put(name, []byte(value))
	}
	s.Complete()
	eventually(t, func() error {
		if n, st := len(d.has(prefix)), s.Status(); n < 300 || !st.Stopped || st.Pending != keys-n || s.WaitRoom(d.ctx) != nil || s.held() != 0 {
			return fmt.Errorf("%d keys, %+v, %d bytes are held", n, st, s.held())
		}
		return nil
	})
	if over := d.outbox.Spent() - grant; over > 2*transactionBytes+kvstore.MaxWrites*one.cost(len(prefix)) {
		t.Errorf("%d bytes more were put than granted", over)
	}
	vital.Put("v", []byte("1"))
	vital.Complete()
	d.until("cilium/state/y/v1/c1/", map[string]string{"v": "1"})
	for name := range d.has(prefix) {
		s.Delete(name)
		delete(all, name)
	}
	d.until(prefix, map[string]string{})
	d.outbox.Grant(Unbounded)
	d.until(prefix, all)
	d.clean(s)
	if st := s.Status(); st.Stopped || st.Pending != 0 {
		t.Errorf("%+v", st)
	}
}

// held returns the number of bytes of the held values.
func (s *Sync) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.bytes
}

// TestAKVStoreWithoutSpaceTakesDeletions: and it takes puts after space is granted.
func TestAKVStoreWithoutSpaceTakesDeletions(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	var full atomic.Bool // whether the etcd has reached its quota
	full.Store(true)
	d.outbox = NewOutbox(&refusing{d.mem, func(w kvstore.Write) error {
		if full.Load() && !w.Delete {
			return kvstore.ErrNoSpace
		}
		return nil
	}}, nil, nil, nil)
	d.outbox.Grant(1 << 40)
	d.run(d.outbox.Run)
	const prefix = "cilium/state/x/v1/c1/"
	d.mem.Set(prefix+"old", "x")
	s := d.sync(Params{Prefix: prefix, Vital: true})
	s.Put("a", []byte("1"))
	waittest.Until(t, "the end of the puts", func() bool { return s.Status().Stopped && !d.outbox.FullAt().IsZero() })
	if n := s.Status().Errors; n == 0 {
		t.Error("the refused puts are not counted")
	}
	counted := s.Status().Errors
	s.Delete("old")
	d.until(prefix, map[string]string{})
	if n := s.Status().Errors; n != counted {
		t.Errorf("%d refused puts, and %d after a deletion that was made", counted, n)
	}
	full.Store(false)
	d.outbox.Grant(1 << 40)
	d.until(prefix, map[string]string{"a": "1"})
}

// TestAnAllowanceIsKept: the writes of one owner are limited to its rate, while those of another owner are made at
// once.
func TestAnAllowanceIsKept(t *testing.T) {
	t.Parallel()
	const each = 250
	for name, r := range map[string]Rate{
		"writes": {Writes: 100, WritesAtOnce: 300},
		"bytes":  {Bytes: 100 * each, BytesAtOnce: 300 * each},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			began := time.Now()
			limited := NewAllowance(r)
			const busy, quiet = "cilium/state/x/v1/busy/", "cilium/state/x/v1/quiet/"
			churn := d.sync(Params{Prefix: busy, Allowance: limited})
			other := d.sync(Params{Prefix: quiet})
			value := strings.Repeat("v", each-len(busy)-4-partSize)
			for i := range 2000 {
				churn.Put(fmt.Sprintf("%04d", i), []byte(value))
			}
			waittest.Until(t, "300 keys", func() bool { return len(d.has(busy)) >= 300 })
			other.Put("a", []byte("1"))
			other.Complete()
			d.clean(other)                                                               // while the first one waits
			waittest.Until(t, "50 more", func() bool { return len(d.has(busy)) >= 350 }) // the writes continue
			n := len(d.has(busy))
			if most := 300 + int(100*time.Since(began).Seconds()) + kvstore.MaxWrites; n > most {
				t.Errorf("%d writes were made where %d may be", n, most)
			}
		})
	}
}
