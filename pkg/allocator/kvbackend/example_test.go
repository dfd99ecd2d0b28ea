package kvbackend_test

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Lookups include the identities of another cluster. OnSync is called when they are complete.
func ExampleWatcher() {
	const labels = "k8s:app=web;k8s:io.cilium.k8s.policy.cluster=west;"
	client := memory.New() // or a kvstore.Durable
	defer client.Close()
	west := wire.CachedIdentities("west")
	client.Set(west.Mapping(196608), labels)

	own, err := kvbackend.New(client, kvbackend.Config{Paths: wire.IdentityAllocation, Node: "10.0.0.1", Keys: identity.Key{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := allocator.NewAllocator(own)
	if err != nil {
		fmt.Println(err)
		return
	}
	complete := make(chan struct{})
	remote := ids.WatchRemoteKVStore("west", &kvbackend.Watcher{Client: client, Paths: west, Keys: identity.Key{}}, nil,
		allocator.OnSync(func() { close(complete) }))

	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	running.Go(func() error { return ids.Run(ctx) })
	running.Go(func() error { return remote.Watch(ctx) })
	<-complete
	fmt.Println(ids.GetByIDIncludeRemoteCaches(ctx, 196608))
	cancel()
	_ = running.Wait() // with the context's error
	// Output: k8s:app=web;k8s:io.cilium.k8s.policy.cluster=west; <nil>
}
