package mesh_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
)

// A mesh for tests: its clusters have kvstores in memory, and no server runs.
func Example_engine() {
	east := memory.New()
	east.Set("cilium/cluster-config/east", `{"id": 1, "capabilities": {"maxConnectedClusters": 255}}`)
	east.Set("cilium/state/ip/v1/default/10.1.0.7", `{"IP": "10.1.0.7", "HostIP": "192.0.2.1", "ID": 66536, "K8sNamespace": "default", "K8sPodName": "web-0"}`)

	directory, err := os.MkdirTemp("", "mesh-")
	must(err)
	defer os.RemoveAll(directory)
	must(os.WriteFile(filepath.Join(directory, "east"), []byte("endpoints: [http://east:2379]\n"), 0o600))
	m, err := mesh.New(mesh.Config{Directory: directory, Engine: memory.Servers{"http://east:2379": east}, Poll: time.Second})
	must(err)

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	must(m.WaitReady(ctx))
	found := m.Lookup(netip.MustParseAddr("10.1.0.7"))
	fmt.Println("10.1.0.7 is", found.Winner().Pod(), "of", found.Winner().Cluster().Name)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// 10.1.0.7 is web-0 of east
	// context canceled
}
