package syncstore

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func unleased(p *Params) { p.Unleased = true }

// awaitUnleased waits until an etcd has exactly these keys, all without a lease.
func (p *publisher) awaitUnleased(c *clientv3.Client, want map[string]string) contents {
	p.t.Helper()
	p.clean()
	is := read(p.t, c)
	if diff := cmp.Diff(want, is.values); diff != "" {
		p.t.Fatalf("(-want +etcd):\n%s", diff)
	}
	if n := is.leases[0]; n != len(want) {
		p.t.Fatalf("%d of %d keys have no lease: %v", n, len(want), is.leases)
	}
	return is
}

// TestUnleasedKeysStay: the keys have no lease. They exist after the writer's keys with a lease are deleted, and the
// next writer has nothing to write.
func TestUnleasedKeysStay(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	o := hurried()
	o.LeaseTTL = 2 * time.Second
	p := publish(t, o, at(srv.Endpoint()), unleased)
	const leased = "cilium/state/y/v1/c2/k"
	other := New(Params{Prefix: "cilium/state/y/v1/c2/", Outbox: p.outbox})
	other.Put("k", []byte("v"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- other.Run(ctx) }()
	want := some(300)
	p.put(want) // in one transaction with the keys of the other Sync
	p.awaitUnleased(srv.Local(), want)
	there := func() bool {
		resp, err := srv.Local().Get(t.Context(), leased)
		must(t, err)
		return resp.Count == 1 && resp.Kvs[0].Lease != 0
	}
	waittest.Until(t, "the key with a lease", there)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.stop()
	waittest.Until(t, "the end of the leases", func() bool { return !there() && read(t, srv.Local()).canary == nil })
	before := read(t, srv.Local())
	if diff := cmp.Diff(want, before.values); diff != "" {
		t.Errorf("after the leases (-want +etcd):\n%s", diff)
	}

	p = publish(t, hurried(), at(srv.Endpoint()), unleased)
	maps.DeleteFunc(want, func(name, _ string) bool { return name == "ns0/service-0000" })
	p.put(want)
	p.awaitUnleased(srv.Local(), want)
	if h := history(t, srv.Local(), before.rev); len(h.puts) != 0 || h.deletes != 1 {
		t.Errorf("the next writer has written %v and deleted %d", h.puts, h.deletes)
	}
}

// TestLeasesAreGivenAndTaken: the next writer removes the leases of keys, and the one after it adds leases, with one
// write for each key.
func TestLeasesAreGivenAndTaken(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	want := some(300)
	var before contents
	for i, change := range []func(*Params){nil, unleased, nil} {
		p := publish(t, hurried(), at(srv.Endpoint()), change)
		p.put(want)
		var is contents
		if change == nil {
			is = p.await(srv.Local(), want)
		} else {
			is = p.awaitUnleased(srv.Local(), want)
		}
		p.stop()
		if i == 0 {
			before = is
			continue
		}
		h := history(t, srv.Local(), before.rev)
		before = read(t, srv.Local())
		if len(h.puts) != len(want) || h.deletes != 0 {
			t.Errorf("writer %d has written %d keys and deleted %d", i, len(h.puts), h.deletes)
		}
		for name, n := range h.puts {
			if n != 1 {
				t.Errorf("writer %d has written %s %d times", i, name, n)
			}
		}
	}
}

// TestUnleasedKeysAreKept: changes by other clients are undone, including a lease that they add.
func TestUnleasedKeysAreKept(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	want := some(20)
	p := publish(t, hurried(), at(srv.Endpoint()), func(s *Params) { s.Unleased, s.Shared = true, true })
	p.put(want)
	p.awaitUnleased(srv.Local(), want)
	lease, err := srv.Local().Grant(t.Context(), 60)
	must(t, err)
	if _, err := srv.Local().Put(t.Context(), testPrefix+"ns0/service-0000", want["ns0/service-0000"], clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	srv.Delete(t, testPrefix+"ns1/service-0001")
	eventually(t, func() error {
		is := read(t, srv.Local())
		if diff := cmp.Diff(want, is.values); diff != "" || is.leases[0] != len(want) {
			return errors.New("it is not as it was: " + diff)
		}
		return nil
	})
	p.stop()
	p = publish(t, hurried(), at(srv.Endpoint()), nil)
	drained := New(Params{Prefix: testPrefix, Outbox: p.outbox, Unleased: true})
	if err := drained.Drain(waittest.Context(t)); err != nil {
		t.Error(err)
	}
	if is := read(t, srv.Local()); len(is.values) != 0 {
		t.Errorf("%d keys are left", len(is.values))
	}
}
