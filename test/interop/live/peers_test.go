package live

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"

	"github.com/mesh-agent/mesh-agent/test/interop"
)

// clusterDir makes a directory of client configurations.
func clusterDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for cluster, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, cluster), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPeersUnderstandEachOther: Cilium's reader sees what Cilium publishes, or else
// the other tests would find fault with us for what the peers do.
func TestPeersUnderstandEachOther(t *testing.T) {
	t.Parallel()
	file := etcdtest.Start(t).ConfigFile(t)
	world := newWorld(newMaker(interop.Seed(t), "c2", 2), few)
	p := interop.Publish(t, interop.Newest, file, interop.Config("c2", 2))
	r := readWithCilium(t, map[string]string{"c2": file})
	p.Put(t, world.objects())
	p.Synced(t, interop.Published()...)
	r.see(t, "everything", soon, world.objects())
	changed, deleted := world.churn(few/4, few/4)
	p.Put(t, changed)
	p.Delete(t, deleted)
	r.see(t, "what was changed and deleted", soon, world.objects())
	quiet(t, "Cilium's publisher", p.Complaints())
	quiet(t, "Cilium's reader", r.Complaints())
	if err := r.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
