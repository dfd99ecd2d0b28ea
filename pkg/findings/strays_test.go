package findings

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
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
		Prefix: netip.MustParsePrefix(f.prefix), Cluster: &ipcache.Claimant{Name: fmt.Sprint("c", f.cluster), ID: f.cluster},
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
	n := &nodes.Node{Cluster: "own", ClusterID: 9, Name: "n" + f.prefix, Source: wire.SourceKVStore, PodCIDRs: []netip.Prefix{netip.MustParsePrefix(f.prefix)}}
	w.applyNodes(change(n.Name, n, yes))
}

// serving returns a service of a remote cluster with these backends.
func serving(id uint32, name string, backends ...string) fact {
	s := service(id, name).(aService)
	for _, a := range backends {
		s.Backends = append(s.Backends, services.Backend{IP: netip.MustParseAddr(a)})
	}
	return s
}

// TestBackendsOfAllServicesAreOneConflict: any number of them is one conflict, whose message has the number.
func TestBackendsOfAllServicesAreOneConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 30 {
		serving(2, fmt.Sprintf("web%02d", i), "127.0.0.1", "169.254.169.254", "10.2.0.1").set(w, true)
	}
	w.look()
	w.expectConflicts("many", "claim/c2/backends-special-use c2 since 1s")
	const want = "at least 60 backends in at least 30 services of c2 are on addresses for special use, such as 127.0.0.1 of ns/web00: in 127.0.0.0/8: loopback (RFC 1122); the agent uses such backends, as Cilium does, unless --claim-policy=enforce is set"
	if got := w.conflicts()[0].Message; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for i := range 30 {
		serving(2, fmt.Sprintf("web%02d", i), "10.2.0.1").set(w, true)
	}
	w.look()
	w.expectConflicts("well")
	if n := len(w.watch.backends.of); n > 0 {
		t.Errorf("%d services are remembered", n)
	}
}
