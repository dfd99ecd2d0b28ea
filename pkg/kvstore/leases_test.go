package kvstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// bank grants leases that last as long as they are kept alive.
type bank struct {
	mu    sync.Mutex
	last  int64
	until map[int64]time.Time
	ttl   time.Duration
	fail  error
	asked int // the number of requests to keep leases alive
	delay time.Duration
}

func newBank() *bank { return &bank{until: make(map[int64]time.Time)} }

func (b *bank) Grant(_ context.Context, ttl time.Duration) (int64, time.Duration, error) {
	<-time.After(b.delay)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return 0, 0, b.fail
	}
	b.last++
	b.ttl = ttl
	b.until[b.last] = time.Now().Add(ttl)
	return b.last, ttl, nil
}

func (b *bank) KeepAlive(_ context.Context, ids []int64) (map[int64]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	if b.fail != nil {
		return nil, b.fail
	}
	alive := make(map[int64]bool)
	for _, id := range ids {
		if alive[id] = b.until[id].After(time.Now()); alive[id] {
			b.until[id] = time.Now().Add(b.ttl)
		}
	}
	return alive, nil
}

func (b *bank) Revoke(_ context.Context, id int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.until, id)
	return b.fail
}

func (b *bank) failing(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// opened is a Leases that uses a bank, with the notifications of its observer.
type opened struct {
	*Leases
	t    *testing.T
	bank *bank

	mu   sync.Mutex
	lost []string
}

func openLeases(t *testing.T, ttl time.Duration) *opened {
	o := &opened{Leases: NewLeases(), t: t, bank: newBank()}
	o.observe("", func(keys []string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.lost = append(o.lost, keys...)
	})
	o.join(joined{lessor: o.bank, clusterID: 1, ttl: ttl})
	return o
}

// write ties a key.
func (o *opened) write(key string) int64 {
	o.t.Helper()
	id, err := o.attach(o.t.Context(), key)
	if err != nil {
		o.t.Fatal(err)
	}
	o.with(func(b *leaseBook) { b.record(key, id, tied, 2) })
	return id
}

// session keeps the leases alive until the returned function is called.
func (o *opened) session() (end func()) {
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan error, 1)
	go func() { done <- o.keep(ctx, o.bank) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			o.t.Error(err)
		}
	}
}

func (o *opened) hasLost(want ...string) {
	o.t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if diff := cmp.Diff(want, o.lost); diff != "" {
		o.t.Error(diff)
	}
	o.lost = nil
}

func TestLeasesAreKeptAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := openLeases(t, 15*time.Minute)
		end := o.session()
		o.write("a")
		<-time.After(10 * time.Hour)
		o.write("a")
		o.hasLost()
		if n := o.bank.asked; n != 120-1 && n != 120 {
			t.Errorf("asked %d times, want once in 5 minutes", n)
		}
		end()
	})
}

func TestLeasesOutliveASession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := openLeases(t, time.Minute)
		end := o.session()
		first := o.write("a")
		end()
		<-time.After(50 * time.Second)
		o.join(joined{lessor: o.bank, clusterID: 1, ttl: time.Minute})
		end = o.session()
		synctest.Wait() // the new session makes its first request at once
		<-time.After(50 * time.Second)
		if id := o.write("a"); id != first {
			t.Errorf("another lease: %d", id)
		}
		end()
		<-time.After(70 * time.Second)
		o.hasLost()
		o.join(joined{lessor: o.bank, clusterID: 1, ttl: time.Minute})
		end = o.session()
		o.hasLost("a") // no session kept the lease alive for too long
		if id := o.write("a"); id == first {
			t.Error("the same lease")
		}
		end()
	})
}

func TestLeasesEndInSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := openLeases(t, time.Minute)
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "leases"})
		o.write("a")
		o.write("b")
		o.join(joined{lessor: o.bank, clusterID: 1, ttl: time.Minute, gauge: gauge})
		if n := testutil.ToFloat64(gauge); n != 1 {
			t.Errorf("the gauge says %v", n)
		}
		defer o.session()()
		synctest.Wait()
		o.bank.failing(errors.New("no answer"))
		<-time.After(55 * time.Second)
		o.hasLost()
		o.bank.failing(nil)
		<-time.After(3 * time.Second) // the next request is made in time
		o.bank.failing(errors.New("no answer"))
		<-time.After(55 * time.Second)
		o.hasLost()
		<-time.After(10 * time.Second)
		o.hasLost("a", "b")
		if n := testutil.ToFloat64(gauge); n != 0 || o.number() != 0 {
			t.Errorf("the gauge says %v, there are %d", n, o.number())
		}
	})
}

// TestLeasesAreGrantedOnce: writes that begin during the request for a lease use that lease.
func TestLeasesAreGrantedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := openLeases(t, time.Minute)
		o.bank.delay = time.Second
		var wg sync.WaitGroup
		for i := range keysPerLease + 100 {
			wg.Go(func() { o.write(fmt.Sprint(i)) })
		}
		wg.Wait()
		if n := o.number(); n != 2 {
			t.Errorf("%d leases for %d keys", n, keysPerLease+100)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := o.attach(ctx, "k"); err != nil {
			t.Error(err)
		}
		o.abandon()
		go func() { _, _ = o.attach(t.Context(), "k") }()
		synctest.Wait()
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := o.attach(ctx, "k2"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		<-time.After(time.Minute)
	})
}

func TestLeasesRevoked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := openLeases(t, time.Minute)
		for i := range keysPerLease + 1 {
			o.write(fmt.Sprint(i))
		}
		if err := o.Revoke(t.Context()); err != nil || len(o.bank.until) != 0 || o.number() != 0 {
			t.Errorf("%v, left %v and %d", err, slices.Collect(maps.Keys(o.bank.until)), o.number())
		}
		o.hasLost()
		o.write("a")
		boom := errors.New("boom")
		o.bank.failing(boom)
		revoked := o.Revoke(t.Context())
		if _, err := o.attach(t.Context(), "a"); !errors.Is(err, boom) || !errors.Is(revoked, boom) {
			t.Errorf("revoke: %v, attach: %v", revoked, err)
		}
	})
}
