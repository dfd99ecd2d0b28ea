package live

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// clusterDir makes a directory of client configurations.
func clusterDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for cluster, file := range files {
		text, err := os.ReadFile(file)
		interop.Must(t, err)
		interop.Must(t, os.WriteFile(filepath.Join(dir, cluster), text, 0o600))
	}
	return dir
}

// TestPeersUnderstandEachOther: Cilium's reader sees what Cilium publishes. Otherwise the other tests would report
// faults of the peers as ours.
func TestPeersUnderstandEachOther(t *testing.T) {
	t.Parallel()
	file := etcdtest.Start(t).ConfigFile(t)
	world := newWorld(newMaker(interop.Seed(t), "c2", 2), few)
	p := interop.Publish(t, interop.Newest, file, interop.Config("c2", 2))
	r := readWithCilium(t, map[string]string{"c2": file})
	p.Put(t, world.objects())
	p.Synced(t, model.Published()...)
	world.follow(t, p, r, soon)
	interop.Quiet(t, "Cilium's publisher", p.Complaints())
	interop.Quiet(t, "Cilium's reader", r.Complaints())
	if err := r.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
