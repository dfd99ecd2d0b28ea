package identity_test

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func cluster(t *testing.T, name string, id uint32) identity.Owner {
	t.Helper()
	l, err := wire.NewLayout(255)
	must(t, err)
	return identity.Owner{Name: name, ID: id, Layout: l}
}

// TestIdentitiesOfRemoteClustersAreFound: by labels and by number, as far as the remote cluster may publish them, in
// addition to our own and the reserved ones; also from the copy that a mirror keeps.
func TestIdentitiesOfRemoteClustersAreFound(t *testing.T) {
	onBoth(t, func(t *testing.T, client kvstore.Writer, _ func()) {
		const (
			web   = "k8s:app=web;k8s:io.cilium.k8s.policy.cluster=west;"
			db    = "k8s:app=db;k8s:io.cilium.k8s.policy.cluster=west;"
			thief = "k8s:app=thief;k8s:io.cilium.k8s.policy.cluster=east;"
		)
		copied := wire.CachedIdentities("west")
		put(t, client,
			copied.Mapping(196608), web,
			copied.Mapping(196609), thief,
			copied.Mapping(196610), "k8s:app=nobodys;",
			copied.Mapping(131999), "k8s:app=ours;k8s:io.cilium.k8s.policy.cluster=west;",
			copied.Mapping(3), "k8s:app=low;k8s:io.cilium.k8s.policy.cluster=west;",
		)
		east, west := cluster(t, "east", 2), cluster(t, "west", 3)
		ids := allocating(t, client, east)
		a, err := identity.NewAllocator(east, ids)
		must(t, err)
		remote := ids.WatchRemoteKVStore("west", &kvbackend.Watcher{Client: client, Paths: copied, Keys: identity.Key{}}, west.Accept)
		running(t, remote.Watch)
		waittest.Until(t, "the list", remote.Synced)
		if n := remote.NumEntries(); n != 1 {
			t.Errorf("%d mappings of the remote cluster are known, want 1", n)
		}

		find := func(labels string) uint64 {
			id, err := ids.GetIncludeRemoteCaches(t.Context(), identity.KeyOf(wire.ParseLabels(labels)))
			if err != nil {
				t.Error(err)
			}
			return id
		}
		lookup := func(labels string, want uint64) {
			t.Helper()
			if id := find(labels); id != want {
				t.Errorf("%s has the identity %d, want %d", labels, id, want)
			}
		}
		labelsOf := func(id uint64, want string) {
			t.Helper()
			key, err := ids.GetByIDIncludeRemoteCaches(t.Context(), id)
			if err != nil || (key == nil) != (want == "") || key != nil && key.GetKey() != want {
				t.Errorf("the identity %d has the labels %v, %v; want %s", id, key, err, want)
			}
		}
		lookup(web, 196608)
		labelsOf(196608, web)
		lookup(thief, 0)
		for _, refused := range []uint64{196609, 196610, 131999, 3} {
			labelsOf(refused, "")
		}

		// The same labels with the own cluster's name are not the remote's.
		own, _, err := a.Allocate(t.Context(), wire.ParseLabels("k8s:app=web;"))
		must(t, err)
		lookup(web, 196608)
		labelsOf(uint64(own), "k8s:app=web;k8s:io.cilium.k8s.policy.cluster=east;")
		for labels, last := range map[string]bool{"k8s:app=web;": true, "reserved:world=;": false} {
			if got, err := a.Release(t.Context(), wire.ParseLabels(labels)); got != last || err != nil {
				t.Errorf("%s is released: %t, %v", labels, got, err)
			}
		}

		// Changes are followed. When a mapping is refused, the previous one stays.
		put(t, client, copied.Mapping(196611), db)
		waittest.Until(t, "a new one", func() bool { return find(db) == 196611 })
		put(t, client, copied.Mapping(196611), thief)
		if _, err := client.Delete(t.Context(), copied.Mapping(196608)); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the end of another", func() bool { return find(web) == 0 })
		lookup(db, 196611)
		lookup(thief, 0)
		remote.Close()
		lookup(db, 0)
		labelsOf(196611, "")
	})
}

// allocating is an allocator of the cluster's identities, which runs until the test ends.
func allocating(t *testing.T, client kvstore.Writer, of identity.Owner, opts ...allocator.Option) *allocator.Allocator {
	t.Helper()
	b, err := kvbackend.New(client, kvbackend.Config{Paths: wire.IdentityAllocation, Node: "10.0.0.1", Keys: identity.Key{}})
	must(t, err)
	ids, err := allocator.NewAllocator(b, append(opts, allocator.WithCluster(of.Layout, of.ID))...)
	must(t, err)
	running(t, ids.Run)
	must(t, ids.WaitForInitialSync(waittest.Context(t)))
	return ids
}

func running(t *testing.T, run func(context.Context) error) {
	ctx, stop := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return run(ctx) })
	t.Cleanup(func() {
		stop()
		_ = g.Wait() // it ends with the context
	})
}

// TestOwnMappingsOfOthersAreRefused: any agent may write them, and mappings that cannot belong to the cluster are not
// looked up.
func TestOwnMappingsOfOthersAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, client kvstore.Writer, _ func()) {
		const (
			web      = "k8s:app=web;k8s:io.cilium.k8s.policy.cluster=east;"
			thief    = "k8s:app=thief;k8s:io.cilium.k8s.policy.cluster=west;"
			ranged   = "k8s:app=ranged;k8s:io.cilium.k8s.policy.cluster=east;"
			nobodies = "container:id=1;"
		)
		paths, east := wire.IdentityAllocation, cluster(t, "east", 2)
		put(t, client, paths.Mapping(131073), web, paths.Mapping(131074), thief, paths.Mapping(196608), ranged, paths.Mapping(131075), nobodies)
		a := allocating(t, client, east, allocator.WithValidator(east.AcceptOwn))
		for id, want := range map[uint64]string{131073: web, 131074: "", 196608: "", 131075: nobodies} {
			key, err := a.GetByID(t.Context(), id)
			if err != nil || (key == nil) != (want == "") || key != nil && key.GetKey() != want {
				t.Errorf("%d is %v, %v; want %q", id, key, err, want)
			}
		}
		put(t, client, paths.Mapping(131073), thief, paths.Mapping(131080), ranged)
		waittest.Until(t, "a change", func() bool {
			id, err := a.Get(t.Context(), identity.KeyOf(wire.ParseLabels(ranged)))
			return err == nil && id == 131080
		})
		if key, err := a.GetByID(t.Context(), 131073); err != nil || key == nil || key.GetKey() != web {
			t.Errorf("what was before is %v, %v", key, err)
		}
	})
}
