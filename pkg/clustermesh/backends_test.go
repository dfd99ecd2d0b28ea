package clustermesh

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestNoRemoteHasOwnBackends: where the rules are enforced, the backends of a remote service do not include own pods,
// the metadata service or loopback addresses. The own networks are those of the settings and of the own nodes, also as
// these are added and removed.
func TestNoRemoteHasOwnBackends(t *testing.T) {
	t.Parallel()
	rules := ipcache.Rules{Own: []ipcache.Own{{Prefix: netip.MustParsePrefix("10.99.0.0/16"), What: "pod network"}}, Enforce: true}
	db, v := newView(t, ipcache.New(rules))

	web := &services.Service{Cluster: "c2", ClusterID: 2, Source: wire.SourceClusterMesh, Shared: true, Namespace: "default", Name: "web"}
	for _, a := range []string{"10.2.0.1", "10.99.0.5", "10.200.0.7", "127.0.0.1", "169.254.169.254"} {
		web.Backends = append(web.Backends, services.Backend{IP: netip.MustParseAddr(a)})
	}
	v.Services.Apply([]store.Change[services.Service]{{Name: "default/web", New: web}})
	uses := func(when string, want ...string) {
		t.Helper()
		g, _, _ := v.Services.Global().Get(db.ReadTxn(), services.GlobalByName("default", "web"))
		var got []string
		for _, b := range g.Backends() {
			got = append(got, b.IP.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	uses("without own nodes", "10.2.0.1", "10.200.0.7")
	node := &nodes.Node{Cluster: "own", ClusterID: 250, Name: "n1", Source: wire.SourceKVStore, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/24")}}
	apply := v.ApplyNodes()
	apply([]store.Change[nodes.Node]{{Name: "n1", New: node}})
	uses("with an own node", "10.2.0.1")
	apply([]store.Change[nodes.Node]{{Name: "n1", Old: node}})
	uses("without it again", "10.2.0.1", "10.200.0.7")
}
