package live

import (
	"context"
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// TestCiliumSeesWhatWePublish, with very many objects of all kinds: as created, changed and deleted, and nothing before
// we have written the canaries.
func TestCiliumSeesWhatWePublish(t *testing.T) {
	t.Parallel()
	seed, n := interop.Seed(t), many(t)
	etcd := etcdtest.StartProcess(t)
	file := etcd.ConfigFile(t)
	world := newWorld(newMaker(seed, "c2", 2), n)

	p := ours.Publish(t, file, interop.Config("c2", 2))
	r := readWithCilium(t, map[string]string{"c2": file})
	p.Put(t, world.objects())
	interop.Until(t, "Cilium to be connected", patience, func(context.Context) error {
		c := r.Clusters(t)
		if len(c) != 1 || !c[0].Connected {
			return fmt.Errorf("it is not: %+v", c)
		}
		if c[0].Ready || r.View(t).Len() > 0 {
			t.Errorf("before the canaries: %+v", c[0])
		}
		return nil
	})
	p.Synced(t)
	created := world.follow(t, p, r, patience)
	interop.Quiet(t, "Cilium's reader", r.Complaints())
	keep(t, interop.WeWrite, seed, created)
}
