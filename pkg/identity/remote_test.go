package identity_test

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/identity"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func cluster(t *testing.T, name string, id uint32) identity.Cluster {
	t.Helper()
	l, err := wire.NewLayout(255)
	if err != nil {
		t.Fatal(err)
	}
	return identity.Cluster{Name: name, ID: id, Layout: l, Fixed: map[uint32]string{128: "kvstore"}}
}

// TestIdentitiesOfRemoteClustersAreFound: by labels and by number, as far as the
// remote cluster may say so, beside our own and the reserved ones; also from the
// copy that a mirror keeps.
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
		b, err := kvbackend.New(client, kvbackend.Config{Paths: wire.IdentityAllocation, Node: "10.0.0.1", Keys: identity.Key{}})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := allocator.NewAllocator(b, allocator.WithCluster(east.Layout, east.ID))
		if err != nil {
			t.Fatal(err)
		}
		a, err := identity.NewAllocator(east, ids)
		if err != nil {
			t.Fatal(err)
		}
		remote := ids.WatchRemoteKVStore("west", &kvbackend.Watcher{Client: client, Paths: copied, Keys: identity.Key{}}, west.Accept)
		ctx, stop := context.WithCancel(t.Context())
		var running errgroup.Group
		running.Go(func() error { return ids.Run(ctx) })
		running.Go(func() error { return remote.Watch(ctx) })
		defer func() {
			stop()
			_ = running.Wait() // they end with the context
		}()
		waittest.Until(t, "the list", remote.Synced)
		if n := remote.NumEntries(); n != 1 {
			t.Errorf("%d mappings of the remote cluster are known, want 1", n)
		}

		lookup := func(labels string, want uint32) {
			t.Helper()
			if id, err := a.Lookup(t.Context(), wire.ParseLabels(labels)); id != want || err != nil {
				t.Errorf("%s has the identity %d, %v; want %d", labels, id, err, want)
			}
		}
		labelsOf := func(id uint32, want string) {
			t.Helper()
			if labels, err := a.LabelsOf(t.Context(), id); labels.Encode() != want || err != nil {
				t.Errorf("the identity %d has the labels %s, %v; want %s", id, labels, err, want)
			}
		}
		lookup(web, 196608)
		labelsOf(196608, web)
		lookup(thief, 0)
		for _, refused := range []uint32{196609, 196610, 131999} {
			labelsOf(refused, "")
		}
		lookup("reserved:world=;", wire.IdentityWorld)
		lookup("reserved:kvstore=;", 128)
		labelsOf(wire.IdentityWorld, "reserved:world=;")
		labelsOf(3, "reserved:unmanaged=;")
		labelsOf(128, "reserved:kvstore=;")

		// The label of the own cluster is added where none is: these are not the remote's.
		lookup("k8s:app=web;", 0)
		own, _, err := a.Allocate(t.Context(), wire.ParseLabels("k8s:app=web;"))
		if err != nil {
			t.Fatal(err)
		}
		lookup("k8s:app=web;", own)
		lookup(web, 196608)
		labelsOf(own, "k8s:app=web;k8s:io.cilium.k8s.policy.cluster=east;")

		// Changes are followed. What is refused leaves what was.
		put(t, client, copied.Mapping(196611), db)
		waittest.Until(t, "a new one", func() bool { id, _ := a.Lookup(t.Context(), wire.ParseLabels(db)); return id == 196611 })
		put(t, client, copied.Mapping(196611), thief)
		if _, err := client.Delete(t.Context(), copied.Mapping(196608)); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the end of another", func() bool { id, _ := a.Lookup(t.Context(), wire.ParseLabels(web)); return id == 0 })
		lookup(db, 196611)
		lookup(thief, 0)
		remote.Close()
		lookup(db, 0)
		labelsOf(196611, "")
	})
}
