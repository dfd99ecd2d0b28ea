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

// TestOwnMappingsOfOthersAreRefused: anybody may write them, and those that cannot be of
// the cluster are not looked up.
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
		b, err := kvbackend.New(client, kvbackend.Config{Paths: paths, Node: "10.0.0.1", Keys: identity.Key{}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := allocator.NewAllocator(b, allocator.WithCluster(east.Layout, east.ID), allocator.WithValidator(east.AcceptOwn))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running errgroup.Group
		running.Go(func() error { return a.Run(ctx) })
		defer func() {
			stop()
			_ = running.Wait() // it ends with the context
		}()
		if err := a.WaitForInitialSync(ctx); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[uint64]string{131073: web, 131074: "", 196608: "", 131075: nobodies} {
			key, err := a.GetByID(ctx, id)
			if err != nil || (key == nil) != (want == "") || key != nil && key.GetKey() != want {
				t.Errorf("%d is %v, %v; want %q", id, key, err, want)
			}
		}
		put(t, client, paths.Mapping(131073), thief, paths.Mapping(131080), ranged)
		waittest.Until(t, "a change", func() bool {
			id, err := a.Get(ctx, identity.KeyOf(wire.ParseLabels(ranged)))
			return err == nil && id == 131080
		})
		if key, err := a.GetByID(ctx, 131073); err != nil || key == nil || key.GetKey() != web {
			t.Errorf("what was before is %v, %v", key, err)
		}
	})
}
