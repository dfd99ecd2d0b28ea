package allocator_test

import (
	"context"
	"fmt"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Two nodes that use the same labels get the same number from the kvstore they share.
func Example() {
	client := memory.New() // or a kvstore.Durable
	defer client.Close()
	for _, node := range []string{"10.0.0.1", "10.0.0.2"} {
		backend, err := kvbackend.New(client, kvbackend.Config{Paths: wire.IdentityAllocation, Node: node, Keys: identity.Key{}})
		if err != nil {
			fmt.Println(err)
			return
		}
		ids, err := allocator.NewAllocator(backend, allocator.WithMin(65536), allocator.WithMax(65536))
		if err != nil {
			fmt.Println(err)
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- ids.Run(ctx) }()
		id, isNew, _, err := ids.Allocate(ctx, identity.KeyOf(wire.ParseLabels("k8s:app=web;")))
		fmt.Println(id, isNew, err)
		cancel()
		<-ended
	}
	// Output:
	// 65536 true <nil>
	// 65536 false <nil>
}
