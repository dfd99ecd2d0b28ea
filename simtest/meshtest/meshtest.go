// Package meshtest has a mesh of simulated clusters that runs until the end of the test, for tests of several packages.
package meshtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// Clusters returns n small clusters, named cluster1 and so on.
func Clusters(n int) []contents.Cluster {
	var all []contents.Cluster
	for i := range n {
		id := uint32(i + 1)
		all = append(all, contents.Default(fmt.Sprint("cluster", id), id))
	}
	return all
}

// Mesh starts clusters that are loaded, with their client files. Their leases are not renewed. They are closed at the
// end of the test.
func Mesh(t testing.TB, o sim.Options, clusters ...contents.Cluster) *sim.Mesh {
	t.Helper()
	m, err := sim.OpenMesh(t.Context(), clusters, o)
	if err == nil {
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		err = m.Load(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Run starts clusters as Mesh does, and keeps them alive until the end of the test.
func Run(t testing.TB, clusters ...contents.Cluster) *sim.Mesh {
	t.Helper()
	m := Mesh(t, sim.Options{}, clusters...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}
