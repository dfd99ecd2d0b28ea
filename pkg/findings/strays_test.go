package findings

import (
	"fmt"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// stray is a published address of a cluster, with an identity.
type stray struct {
	cluster  uint32
	prefix   string
	identity uint32
}

func (f stray) String() string { return fmt.Sprint("address ", f.prefix, " of ", f.cluster) }

func (f stray) set(w *world, yes bool) {
	e := ipcache.NewEntry(ipcache.Spec{
		Prefix: netip.MustParsePrefix(f.prefix), Cluster: &ipcache.Cluster{Name: fmt.Sprint("c", f.cluster), ID: f.cluster},
		Source: wire.SourceClusterMesh, Identity: f.identity,
	})
	if yes {
		w.ips.Apply([]ipcache.Op{{New: e}})
	} else {
		w.ips.Apply([]ipcache.Op{{Old: e}})
	}
}

// ownNetwork is the pod network of a node of the own cluster.
type ownNetwork struct{ prefix string }

func (f ownNetwork) String() string { return "own network " + f.prefix }

func (f ownNetwork) set(w *world, yes bool) {
	e := ipcache.NewEntry(ipcache.Spec{
		Prefix: netip.MustParsePrefix(f.prefix), Cluster: &ipcache.Cluster{Name: "own", ID: 9}, Kind: ipcache.KindPodCIDR,
		Source: wire.SourceKVStore, Identity: wire.IdentityWorld, Name: "n",
	})
	if yes {
		w.ips.Apply([]ipcache.Op{{New: e}})
	} else {
		w.ips.Apply([]ipcache.Op{{Old: e}})
	}
}
