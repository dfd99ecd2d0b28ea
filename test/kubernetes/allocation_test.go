package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/crdbackend"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func key(text string) allocator.Key {
	return identity.KeyOf(wire.Labels{{Source: "k8s", Key: "app", Value: text}})
}

// stores are an API server that can store identities, and an etcd.
type stores struct {
	*testing.T
	api  *kubetest.Server
	etcd *etcd.Session
}

func newStores(t *testing.T) *stores {
	t.Helper()
	t.Parallel()
	s := &stores{T: t, api: kubetest.Start(t)}
	s.api.Apply(t, manifest(t, "ciliumidentities.yaml")...)
	server := etcdtest.Start(t)
	s.etcd = sessiontest.Connect(t, server.Endpoint())
	return s
}

// client returns a client of the API server without a rate limit of its own.
func (s *stores) client() dynamic.Interface {
	s.Helper()
	config := s.api.Config(kubetest.Admin)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	return client
}

func (s *stores) node(n int, ttl time.Duration) *crdbackend.Backend {
	s.Helper()
	b, err := crdbackend.New(s.client(), crdbackend.Config{
		Namespace: "kube-system", Node: fmt.Sprint("10.0.0.", n), Keys: identity.Key{}, TTL: ttl,
	})
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *stores) mode(m modes.Mode, n int, collect *modes.Collect) *modes.Backend {
	s.Helper()
	b, err := modes.New(modes.Config{
		Mode: m, Writer: s.etcd, Kubernetes: s.client(), Namespace: "kube-system", TTL: time.Hour,
		Node: fmt.Sprint("10.0.0.", n), Keys: identity.Key{}, Collect: collect,
	})
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// is fails the test on an error, or when done is not the wanted value.
func (s *stores) is(done bool, err error, want bool) {
	s.Helper()
	if err != nil || done != want {
		s.Errorf("%v, %v; want %v", done, err, want)
	}
}

// has wants the number to belong to the key, nil for no key.
func (s *stores) has(b allocator.Backend, id uint64, want allocator.Key) {
	s.Helper()
	if got, err := b.GetByID(s.Context(), id); err != nil || (got == nil) != (want == nil) || got != nil && got.GetKey() != want.GetKey() {
		s.Errorf("%d is %v, %v; want %v", id, got, err, want)
	}
}

func TestIdentitiesAsObjects(t *testing.T) {
	s := newStores(t)
	b, ctx := s.node(1, time.Hour), t.Context()
	done, err := b.AcquireReference(ctx, 7, key("a"), nil)
	s.is(done, err, false)
	done, err = b.AllocateID(ctx, 7, key("a"), nil)
	s.is(done, err, true)
	for _, k := range []allocator.Key{key("a"), key("b")} {
		done, err = b.AllocateID(ctx, 7, k, nil)
		s.is(done, err, false)
	}
	s.has(b, 7, key("a"))
	s.has(b, 8, nil)
	done, err = b.AcquireReference(ctx, 7, key("b"), nil)
	s.is(done, err, false)
	done, err = b.InUse(ctx, 7, nil)
	s.is(done, err, false)
	done, err = b.AcquireReference(ctx, 7, key("a"), nil)
	s.is(done, err, true)
	done, err = s.node(2, time.Hour).InUse(ctx, 7, nil)
	s.is(done, err, true)
	for k, want := range map[string]uint64{"a": 7, "b": 0} {
		if id, err := b.Get(ctx, key(k), nil); err != nil || id != want {
			t.Errorf("%s has %d, %v; want %d", k, id, err, want)
		}
	}
	if err := b.UpdateKey(ctx, 7, key("b"), false, nil); !errors.Is(err, allocator.ErrTaken) {
		t.Errorf("a number of another key was refreshed: %v", err)
	}
	if err := b.UpdateKey(ctx, 9, key("c"), false, nil); err != nil {
		t.Error(err)
	}
	s.has(b, 9, key("c"))
	done, err = b.Restore(ctx, 9, key("d"), key("x"), nil)
	s.is(done, err, false)
	done, err = b.Restore(ctx, 9, key("d"), key("c"), nil)
	s.is(done, err, true)
	s.has(b, 9, key("d"))
	if err := b.Release(ctx, 7, key("a")); err != nil {
		t.Error(err)
	}
	done, err = b.InUse(ctx, 7, nil)
	s.is(done, err, false)
	if ids, err := b.ListIDs(ctx); err != nil || !slices.Equal(ids, []uint64{7, 9}) {
		t.Errorf("there are %d, %v", ids, err)
	}
	if done, err := b.DeleteID(ctx, 9); done || !errors.Is(err, allocator.ErrIDInUse) {
		t.Errorf("a number in use is deleted: %t, %v", done, err)
	}
	for _, want := range []bool{true, false} {
		done, err = b.DeleteID(ctx, 7)
		s.is(done, err, want)
	}
	s.has(b, 7, nil)
	if err := b.DeleteAllKeys(ctx); err != nil {
		t.Error(err)
	}
	s.has(b, 7, nil)
	done, err = b.InUse(ctx, 9, nil)
	s.is(done, err, false)
}

func TestNothingIsWrittenWithoutTheLock(t *testing.T) {
	s := newStores(t)
	one, two, ctx := s.node(1, time.Hour), s.node(2, time.Hour), t.Context()
	lock, err := one.Lock(ctx, key("a"))
	waittest.Must(t, err)
	done, err := one.AllocateID(ctx, 7, key("a"), lock)
	s.is(done, err, true)
	other := make(chan allocator.Lock)
	go func() {
		l, err := two.Lock(ctx, key("a"))
		if err != nil {
			t.Error(err)
		}
		other <- l
	}()
	select {
	case <-other:
		t.Fatal("two have the lock")
	default:
	}
	lock.Unlock()
	lock.Unlock()
	(<-other).Unlock()
	for name, call := range map[string]func() error{
		"allocate": func() error { _, err := one.AllocateID(ctx, 8, key("b"), lock); return err },
		"acquire":  func() error { _, err := one.AcquireReference(ctx, 7, key("a"), lock); return err },
		"restore":  func() error { _, err := one.Restore(ctx, 7, key("b"), key("a"), lock); return err },
		"update":   func() error { return one.UpdateKey(ctx, 7, key("a"), false, lock) },
		"get":      func() error { _, err := one.Get(ctx, key("a"), lock); return err },
	} {
		if err := call(); !errors.Is(err, kvstore.ErrLockLeaseExpired) {
			t.Errorf("%s: %v, want %v", name, err, kvstore.ErrLockLeaseExpired)
		}
	}
	s.has(one, 7, key("a"))
	s.has(one, 8, nil)

	if _, err := one.Lock(ctx, key("left behind")); err != nil {
		t.Fatal(err)
	}
	stale, err := two.RunLocksGC(ctx, nil)
	if err != nil || len(stale) != 1 {
		t.Errorf("%v, %v: want one lock", stale, err)
	}
	if stale, err = two.RunLocksGC(ctx, stale); err != nil || len(stale) != 0 {
		t.Errorf("%v, %v: want none", stale, err)
	}
	for range 2 { // free the first time, and then not released, until it expires
		if _, err := two.Lock(ctx, key("left behind")); err != nil {
			t.Error(err)
		}
	}
}

// TestALockWhoseAnswerIsLostIsGivenUp: the lock is released at once, and not only when it expires.
func TestALockWhoseAnswerIsLostIsGivenUp(t *testing.T) {
	s := newStores(t)
	config := s.api.Config(kubetest.Admin)
	var lose atomic.Bool
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && r.Method == http.MethodPost && lose.Swap(false) {
				return nil, errors.Join(errors.New("lost"), resp.Body.Close())
			}
			return resp, err
		})
	})
	client, err := dynamic.NewForConfig(config)
	waittest.Must(t, err)
	b, err := crdbackend.New(client, crdbackend.Config{Namespace: "kube-system", Node: "10.0.0.1", Keys: identity.Key{}, TTL: time.Hour})
	waittest.Must(t, err)
	lose.Store(true)
	if _, err := b.Lock(t.Context(), key("a")); err == nil {
		t.Fatal("the answer was not lost")
	}
	if left, err := b.RunLocksGC(t.Context(), nil); err != nil || len(left) != 0 {
		t.Errorf("%v, %v: want no lock", left, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
