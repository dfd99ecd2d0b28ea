package mesh_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// Example starts a mesh, waits until it is ready, looks up an address, follows the
// changes of addresses, and stops.
func Example() {
	east := startCluster("east", 1) // starts an etcd with one cluster, for this example
	defer east.stop()
	east.put("10.1.0.7", "web-0")

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m, err := mesh.New(mesh.Config{Directory: east.directory})
	if err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	if err := m.WaitReady(ctx); err != nil {
		panic(err)
	}
	found := m.Lookup(netip.MustParseAddr("10.1.0.7"))
	fmt.Println("10.1.0.7 is", found.Winner().Pod(), "of", found.Winner().Cluster().Name)

	for e := range m.Changes(ctx, "", view.IPs) {
		before, known := e.Before.(*ipcache.Entry)
		switch {
		case e.Type == view.Synced:
			east.put("10.1.0.7", "web-1")
		case e.Type == view.Upsert && !known:
			fmt.Println(e.Object.(*ipcache.Entry).Prefix(), "is there")
		case e.Type == view.Upsert:
			fmt.Println(before.Prefix(), "was", before.Pod(), "and is", e.Object.(*ipcache.Entry).Pod())
			cancel() // ends the loop and the mesh
		}
	}
	fmt.Println(<-ended)
	// Output:
	// 10.1.0.7 is web-0 of east
	// 10.1.0.7/32 is there
	// 10.1.0.7/32 was web-0 and is web-1
	// context canceled
}
