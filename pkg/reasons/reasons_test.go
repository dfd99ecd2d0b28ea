package reasons

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/codes/codestest"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

var epoch = time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)

// world is a view over real tables; clusters and keys are as the test says.
type world struct {
	t          *testing.T
	db         *statedb.DB
	nodes      *nodes.Nodes
	services   *services.Services
	identities *allocator.Identities
	ips        *ipcache.Cache
	clusters   map[string]remotecluster.Status
	found      map[string]store.Found // by cluster, resource and name
	own        string
}

// newWorld has the own cluster c1 and two others, all fresh.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: statedb.New(), ips: ipcache.New(), found: make(map[string]store.Found), own: "c1"}
	var err error
	for _, make := range []func() error{
		func() error { w.nodes, err = nodes.New(w.db); return err },
		func() error { w.services, err = services.New(w.db); return err },
		func() error { w.identities, err = allocator.New(w.db); return err },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
	}
	w.clusters = map[string]remotecluster.Status{"c1": fresh("c1", 1), "c2": fresh("c2", 2), "c3": fresh("c3", 3)}
	return w
}

// fresh is a cluster of which everything is known.
func fresh(name string, id uint32) remotecluster.Status {
	c := remotecluster.Status{
		Name: name, ID: id, State: remotecluster.Ready, Code: codes.AllFollowed, Ready: true, Connected: true, ConfigFile: "/mesh/" + name,
		Capabilities: new(wire.Capabilities), Sources: make(map[wire.Resource]remotecluster.SourceStatus), Heartbeat: kvstore.HeartbeatStatus{Seen: epoch},
	}
	for _, r := range wire.Resources() {
		c.Sources[r] = remotecluster.SourceStatus{
			Exported: r != wire.EndpointSlices, Synced: true, Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: epoch},
		}
	}
	return c
}

// lose makes what is known of a cluster old.
func (w *world) lose(cluster string) {
	c := w.clusters[cluster]
	c.Connected, c.Ready, c.State, c.Code, c.Message = false, false, remotecluster.Degraded, codes.ConnectionLost, "not connected"
	for r, s := range c.Sources {
		s.Freshness.State = remotecluster.FreshnessStale
		c.Sources[r] = s
	}
	w.clusters[cluster] = c
}

// refuses lets entries of a cluster be refused.
func (w *world) refuses(cluster string, r wire.Resource, reason wire.Reason, n int) {
	src := w.clusters[cluster].Sources[r]
	src.Rejected, src.Rejections = n, map[wire.Reason]int{reason: n}
	if reason == wire.ReasonBudget {
		src.Over = store.OverKeys
	}
	w.clusters[cluster].Sources[r] = src
}

func (w *world) view() *View {
	return &View{
		Txn: w.db.ReadTxn(), Nodes: w.nodes.Table(), Exported: w.services.Exported(), Slices: w.services.Slices(), Exports: w.services.ServiceExports(), Services: w.services.Global(),
		Identities: w.identities.Table(), IPs: w.ips, Clusters: w.clusters, Own: w.own,
		Find: func(cluster string, r wire.Resource, name string) (store.Found, bool) {
			f, known := w.found[cluster+" "+string(r)+" "+name]
			return f, known
		},
	}
}

// knows adds a key.
func (w *world) knows(cluster string, r wire.Resource, name, refused string) {
	f := store.Found{Key: r.Key(cluster, false, name), Revision: 7, Read: epoch, InForce: refused == ""}
	if refused != "" {
		f.Reason, f.Why = wire.ReasonMalformed, refused
	}
	w.found[cluster+" "+string(r)+" "+name] = f
}

// exports adds a service default/web.
func (w *world) exports(cluster string, change func(*services.Service)) {
	s := &services.Service{
		Cluster: cluster, ClusterID: w.clusters[cluster].ID, Namespace: "default", Name: "web", Shared: true, IncludeExternal: true,
		Source: wire.SourceClusterMesh, Backends: []services.Backend{{IP: netip.MustParseAddr("10.0.0." + cluster[1:])}},
	}
	if cluster == w.own {
		s.Source = wire.SourceKVStore
	}
	change(s)
	w.services.Apply([]store.Change[services.Service]{{Name: "default/web", New: s}})
	w.knows(cluster, wire.Services, "default/web", "")
}

// loopback is a judge that bars 127.0.0.1.
type loopback struct{}

func (loopback) Enforces() bool { return true }

func (loopback) Breaches(addrs iter.Seq[netip.Addr], visit func(netip.Addr, uint8, fmt.Stringer)) {
	for a := range addrs {
		if a.IsLoopback() {
			visit(a, 1, time.Second)
		}
	}
}

func same(*services.Service) {}

func alone(s *services.Service)  { s.Shared, s.IncludeExternal = false, false }
func empty(s *services.Service)  { s.Backends = nil }
func hidden(s *services.Service) { s.Shared = false }

func affinity(a wire.Affinity) func(*services.Service) {
	return func(s *services.Service) { s.Affinity = a }
}

// claims adds a claim on an address.
func (w *world) claims(cluster, prefix string, kind ipcache.Kind, name string) {
	c := w.clusters[cluster]
	w.ips.Apply([]ipcache.Op{{New: ipcache.NewEntry(ipcache.Spec{
		Prefix: netip.MustParsePrefix(prefix), Cluster: &ipcache.Cluster{Name: cluster, ID: c.ID}, Kind: kind, Source: wire.SourceClusterMesh, Name: name,
	})}})
}

// hasNode adds a node with an address, and its claim on it.
func (w *world) hasNode(cluster, name, ip string) {
	n := &nodes.Node{Cluster: cluster, ClusterID: w.clusters[cluster].ID, Name: name, Addresses: []nodes.Address{{Type: "InternalIP", IP: netip.MustParseAddr(ip)}}}
	w.nodes.Apply([]store.Change[nodes.Node]{{Name: name, New: n}})
	w.knows(cluster, wire.Nodes, name, "")
	w.claims(cluster, ip+"/32", ipcache.KindNode, name)
}

func (w *world) hasIdentity(cluster string, id uint32) {
	w.identities.Apply([]store.Change[allocator.Identity]{{Name: "x", New: &allocator.Identity{ID: id, Cluster: cluster, ClusterID: w.clusters[cluster].ID}}})
}

// situation is what a world has and what is asked; it comes to a verdict, and has
// steps, in words.
type situation struct {
	name   string
	make   func(*world)
	ask    func(*View) Explanation
	code   codes.Code
	text   string
	having map[string]codes.Code // steps by cluster
}

func web(v *View) Explanation { return Service(v, "default", "web") }

func address(text string) func(*View) Explanation {
	return func(v *View) Explanation {
		a := netip.MustParseAddr(text)
		return Address(v, a, v.IPs.Lookup(a))
	}
}

func number(id uint32) func(*View) Explanation {
	return func(v *View) Explanation { return Identity(v, id) }
}

func node(cluster, name string) func(*View) Explanation {
	return func(v *View) Explanation { return Node(v, cluster, name) }
}

func cluster(name string) func(*View) Explanation {
	return func(v *View) Explanation { return Cluster(v.Clusters[name]) }
}

func situations() []situation {
	type have = map[string]codes.Code
	return []situation{
		{"all share it", func(w *world) { w.exports("c1", same); w.exports("c2", same) }, web, codes.ServiceGlobal, "global: shared by c1 and c2; 2 backends are in use", have{"c1": codes.PartUsed, "c2": codes.PartUsed, "c3": codes.PartNotExported}},
		{"an observer", func(w *world) { w.own = ""; delete(w.clusters, "c1"); w.exports("c2", same) }, web, codes.ServiceGlobal, "global: shared by c2; 1 backend is in use", have{"c2": codes.PartUsed, "c3": codes.PartNotExported}},
		{"nobody has it", func(*world) {}, web, codes.ServiceNowhere, "no cluster exports default/web", have{"c1": codes.PartNotExported, "c3": codes.PartNotExported}},
		{"nobody is known to have it", func(w *world) { w.lose("c3") }, web, codes.ServiceUnknown, "nobody is known to share default/web, and the services of c3 are not known as of now", have{"c3": codes.PartUnknown}},
		{"the own cluster is not read", func(w *world) { delete(w.clusters, "c1") }, web, codes.ServiceUnknown, "nobody is known to share default/web, and the services of c1 are not known as of now", have{"c1": codes.PartUnknown}},
		{"the own one is not global", func(w *world) { w.exports("c1", alone); w.exports("c2", same) }, web, codes.OwnNotGlobal, "not global: the service of the own cluster c1 is not annotated as global", have{"c1": codes.PartUsed, "c2": codes.PartStandsBy}},
		{"others do not export it", func(w *world) { w.exports("c1", same) }, web, codes.NotExported, "not global: cluster c2 and c3 do not export it", have{"c1": codes.PartUsed, "c2": codes.PartNotExported, "c3": codes.PartNotExported}},
		{"another may export it", func(w *world) { w.exports("c1", same); w.lose("c2") }, web, codes.ServiceUnknown, "not global as far as is known: the services of c2 are not known as of now", have{"c2": codes.PartUnknown}},
		{"there is no other", func(w *world) { delete(w.clusters, "c2"); delete(w.clusters, "c3"); w.exports("c1", same) }, web, codes.NotExported, "not global: there is no cluster beside c1", nil},
		{"others do not share it", func(w *world) { w.exports("c1", same); w.exports("c2", hidden) }, web, codes.NotShared, "not global: c2 publishes it with shared=false", have{"c2": codes.PartNotShared}},
		{"nobody shares it", func(w *world) { w.exports("c2", hidden) }, web, codes.NotShared, "not global: c2 publishes it with shared=false", have{"c2": codes.PartNotShared}},
		{"no own service", func(w *world) { w.exports("c2", same) }, web, codes.NoOwnService, "not used here: c2 shares it, and the own cluster c1 has no service of this name", have{"c1": codes.PartNotExported, "c2": codes.PartUsed}},
		{"affinity local", func(w *world) { w.exports("c1", affinity(wire.AffinityLocal)); w.exports("c2", same) }, web, codes.AffinityLocal, "global, and only the own backends are used: standing by: the affinity is local and a local backend is active", have{"c1": codes.PartUsed, "c2": codes.PartStandsBy}},
		{"affinity remote", func(w *world) { w.exports("c1", affinity(wire.AffinityRemote)); w.exports("c2", same) }, web, codes.AffinityRemote, "global, and only the backends of others are used: standing by: the affinity is remote and a remote backend is healthy", have{"c1": codes.PartStandsBy, "c2": codes.PartUsed}},
		{"no backends", func(w *world) { w.exports("c1", empty); w.exports("c2", empty) }, web, codes.NoBackends, "global, and without backends: nobody who shares it has any", have{"c1": codes.PartEmpty, "c2": codes.PartEmpty}},
		{"refused", func(w *world) { w.knows("c2", wire.Services, "default/web", "no JSON") }, web, codes.RefusedEverywhere, "not global: the entry of c2 is refused", have{"c2": codes.PartRefused}},
		{"refused, and the own one is global", func(w *world) { w.exports("c1", same); w.knows("c2", wire.Services, "default/web", "no JSON") }, web, codes.RefusedEverywhere, "not global: the entry of c2 is refused", have{"c2": codes.PartRefused}},
		{"withheld", func(w *world) { w.exports("c1", same); w.exports("c2", same); w.services.Withhold("c2", true) }, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartWithheld}},
		{"withdrawn", func(w *world) {
			w.exports("c1", same)
			w.exports("c2", same)
			w.services.SetUse("c2", services.Withdrawn)
		}, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartWithheld}},
		{"demoted", func(w *world) {
			w.exports("c1", same)
			w.exports("c2", same)
			w.services.SetUse("c2", services.Demoted)
		}, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartDemoted}},
		{"the last ones", func(w *world) {
			w.exports("c1", empty)
			w.exports("c2", same)
			w.services.SetUse("c2", services.Withdrawn)
		}, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartKept}},

		{"backends that no remote can have", func(w *world) {
			w.services.JudgeBackends(loopback{})
			w.exports("c1", same)
			w.exports("c2", func(s *services.Service) { s.Backends[0].IP = netip.MustParseAddr("127.0.0.1") })
			w.exports("c3", same)
		}, web, codes.ServiceGlobal, "global: shared by c1, c2 and c3; 2 backends are in use", have{"c1": codes.PartUsed, "c2": codes.PartBarred, "c3": codes.PartUsed}},
		{"no backends but those that no remote can have", func(w *world) {
			w.services.JudgeBackends(loopback{})
			w.exports("c1", empty)
			w.exports("c2", func(s *services.Service) { s.Backends[0].IP = netip.MustParseAddr("127.0.0.1") })
		}, web, codes.NoBackends, "global, and without backends that may be used: those of c2 are on addresses that no remote can have", have{"c1": codes.PartEmpty, "c2": codes.PartBarred}},

		{"a claim inside the own networks", func(w *world) {
			w.ips = ipcache.NewWith(ipcache.Rules{Own: []ipcache.Own{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), What: "pod network"}}})
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressUnclaimed, "nobody claims 10.0.0.1", have{"c2": codes.ClaimInOwnNetwork}},
		{"a claim on an address for special use", func(w *world) { w.claims("c2", "127.0.0.1/32", ipcache.KindHost, "") }, address("127.0.0.1"), codes.AddressOwned, "127.0.0.1 is that of c2, whose claim breaks a rule: see the first step", have{"c2": codes.ClaimSpecialUse}},
		{"a claim in the pod network of another", func(w *world) {
			w.claims("c2", "10.0.0.0/24", ipcache.KindPodCIDR, "n1")
			w.claims("c3", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c3, whose claim breaks a rule: see the first step", have{"c2": codes.ClaimShorter, "c3": codes.ClaimInForeignNetwork}},
		{"a claim in the pod network of another, enforced", func(w *world) {
			w.ips = ipcache.NewWith(ipcache.Rules{Enforce: true})
			w.claims("c2", "10.0.0.0/24", ipcache.KindPodCIDR, "n1")
			w.claims("c3", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressInNetwork, "nobody claims 10.0.0.1 itself; it is in 10.0.0.0/24 of c2", have{"c2": codes.ClaimWon, "c3": codes.ClaimInForeignNetwork}},
		{"a claim with a privileged identity", func(w *world) {
			w.ips = ipcache.NewWith(ipcache.Rules{Enforce: true})
			w.ips.Apply([]ipcache.Op{{New: ipcache.NewEntry(ipcache.Spec{
				Prefix: netip.MustParsePrefix("10.0.0.1/32"), Cluster: &ipcache.Cluster{Name: "c2", ID: 2}, Source: wire.SourceClusterMesh, Identity: wire.IdentityKubeAPIServer,
			})}})
		}, address("10.0.0.1"), codes.AddressUnclaimed, "nobody claims 10.0.0.1", have{"c2": codes.ClaimReservedIdentity}},
		{"a claim that is refused", func(w *world) { w.knows("c2", wire.IPs, "10.0.0.1", "policy: not granted") }, address("10.0.0.1"), codes.AddressUnclaimed, "nobody claims 10.0.0.1", have{"c2": codes.ClaimRefused}},
		{"more claims than have steps", func(w *world) {
			for i := range 3 * ipcache.MaxReported {
				w.claims([]string{"c2", "c3"}[i%2], "10.0.0.1/32", ipcache.KindNode, fmt.Sprint("n", i))
			}
		}, address("10.0.0.1"), codes.AddressContested, "10.0.0.1/32 is claimed by c2 and c3; c2 counts", have{"c2": codes.ClaimWon, "c3": codes.ClaimLost, "": codes.ClaimsUntold}},
		{"more barred claims than have steps", func(w *world) {
			w.ips = ipcache.NewWith(ipcache.Rules{Own: []ipcache.Own{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), What: "pod network"}}})
			for i := range 2 * ipcache.MaxReported {
				w.claims("c2", "10.0.0.1/32", ipcache.KindNode, fmt.Sprint("n", i))
			}
		}, address("10.0.0.1"), codes.AddressUnclaimed, "nobody claims 10.0.0.1", have{"c2": codes.ClaimInOwnNetwork, "": codes.ClaimsUntold}},
		{"one claim", func(w *world) { w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "") }, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c2", have{"c2": codes.ClaimWon}},
		{"a network", func(w *world) { w.claims("c2", "10.0.0.0/24", ipcache.KindCIDR, "") }, address("10.0.0.1"), codes.AddressInNetwork, "nobody claims 10.0.0.1 itself; it is in 10.0.0.0/24 of c2", have{"c2": codes.ClaimWon}},
		{"a network and an address", func(w *world) {
			w.claims("c3", "10.0.0.0/24", ipcache.KindCIDR, "")
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c2", have{"c2": codes.ClaimWon, "c3": codes.ClaimShorter}},
		{"two claims", func(w *world) {
			w.claims("c3", "10.0.0.1/32", ipcache.KindHost, "")
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressContested, "10.0.0.1/32 is claimed by c2 and c3; c2 counts", have{"c2": codes.ClaimWon, "c3": codes.ClaimLost}},
		{"no claim", func(*world) {}, address("10.0.0.1"), codes.AddressUnclaimed, "nobody claims 10.0.0.1", nil},
		{"no claim that is known", func(w *world) { w.lose("c3") }, address("10.0.0.1"), codes.AddressUnknown, "nobody is known to claim 10.0.0.1, and the addresses of c3 are not known as of now", have{"c3": codes.ClaimsUnknown}},

		{"an identity", func(w *world) { w.hasIdentity("c2", 131073); w.knows("c2", wire.Identities, "131073", "") }, number(131073), codes.IdentityKnown, "131073 is known from c2", have{"c2": codes.MappingRead}},
		{"a reserved one", func(*world) {}, number(1), codes.IdentityReserved, "1 is reserved: host", nil},
		{"an identity that nobody has", func(*world) {}, number(131073), codes.IdentityNowhere, "nobody has published 131073", nil},
		{"an identity that nobody is known to have", func(w *world) { w.lose("c2") }, number(131073), codes.IdentityUnknown, "nobody is known to have published 131073, and the identities of c2 are not known as of now", have{"c2": codes.MappingUnknown}},
		{"an identity that is refused", func(w *world) { w.knows("c2", wire.Identities, "131073", "out of range") }, number(131073), codes.IdentityNowhere, "nobody has published 131073", have{"c2": codes.MappingRefused}},

		{"a node", func(w *world) { w.hasNode("c2", "n1", "192.168.0.1") }, node("c2", "n1"), codes.NodeKnown, "known, and its addresses count as its own", have{"c2": codes.NodeClaimCounts}},
		{"a node of long ago", func(w *world) { w.hasNode("c2", "n1", "192.168.0.1"); w.lose("c2") }, node("c2", "n1"), codes.NodeNotAsOfNow, "known as of 2026-11-22T01:02:03Z: the nodes of c2: not confirmed since 2026-11-22T01:02:03Z (MESH-1206 not connected)", nil},
		{"a node with another's address", func(w *world) { w.hasNode("c3", "n1", "192.168.0.1"); w.hasNode("c2", "n2", "192.168.0.1") }, node("c3", "n1"), codes.NodeAddressLost, "its address 192.168.0.1 counts as another's", have{"c3": codes.NodeClaimLost}},
		{"no such node", func(*world) {}, node("c2", "n1"), codes.NodeNowhere, "c2 has no node n1", nil},
		{"no such node, as far as is known", func(w *world) { w.lose("c2") }, node("c2", "n1"), codes.NodeUnknown, "it is not known whether c2 has a node n1: its nodes: not confirmed since 2026-11-22T01:02:03Z (MESH-1206 not connected)", nil},
		{"a node of an unknown cluster", func(*world) {}, node("c9", "n1"), codes.NodeUnknown, "it is not known whether c9 has a node n1: its nodes: nobody here reads that cluster", nil},

		{"refused for the budget", func(w *world) { w.refuses("c2", wire.Services, wire.ReasonBudget, 3) }, web, codes.ServiceUnknown, "nobody is known to share default/web, and not all services of c2 are known: some are refused", have{"c2": codes.PartsRefused, "c3": codes.PartNotExported}},
		{"another may export it, for all that is refused", func(w *world) {
			w.exports("c1", same)
			w.lose("c3")
			w.refuses("c2", wire.EndpointSlices, wire.ReasonTooLarge, 3)
		}, web, codes.ServiceUnknown, "not global as far as is known: the services of c3 are not known as of now, and not all services of c2 are known: some are refused", have{"c2": codes.PartsRefused}},
		{"addresses are refused", func(w *world) { w.refuses("c2", wire.IPs, wire.ReasonBudget, 176) }, address("10.0.0.1"), codes.AddressUnknown, "nobody is known to claim 10.0.0.1, and not all addresses of c2 are known: some are refused", have{"c2": codes.ClaimsRefused}},
		{"addresses are refused, and a network is known", func(w *world) {
			w.claims("c2", "10.0.0.0/24", ipcache.KindCIDR, "")
			w.refuses("c2", wire.IPs, wire.ReasonBudget, 176)
		}, address("10.0.0.1"), codes.AddressUnknown, "nobody is known to claim 10.0.0.1 itself, which is in 10.0.0.0/24 of c2; but not all addresses of c2 are known: some are refused", have{"c2": codes.ClaimsRefused}},
		{"addresses are refused, and this one is known", func(w *world) {
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
			w.refuses("c2", wire.IPs, wire.ReasonBudget, 176)
		}, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c2", have{"c2": codes.ClaimsRefused}},
		{"the policy refuses addresses", func(w *world) { w.refuses("c2", wire.IPs, wire.ReasonPolicy, 176) }, address("10.0.0.1"), codes.AddressUnclaimed, "nobody claims 10.0.0.1", nil},
		{"identities are refused", func(w *world) { w.refuses("c2", wire.Identities, wire.ReasonPolicy, 2) }, number(131073), codes.IdentityUnknown, "nobody is known to have published 131073, and not all identities of c2 are known: some are refused", have{"c2": codes.MappingsRefused}},
		{"nodes are refused", func(w *world) { w.refuses("c2", wire.Nodes, wire.ReasonBudget, 2) }, node("c2", "n1"), codes.NodeUnknown, "it is not known whether c2 has a node n1: 2 of its nodes are refused: over its budget (keys)", have{"c2": codes.NodesRefused}},

		{"a cluster", func(*world) {}, cluster("c2"), codes.AllFollowed, "ready", nil},
		{"a lost cluster", func(w *world) { w.lose("c2") }, cluster("c2"), codes.ConnectionLost, "degraded: not connected", nil},
		{"a cluster without a heartbeat", func(w *world) {
			c := w.clusters["c2"]
			c.Heartbeat = kvstore.HeartbeatStatus{Age: time.Hour, Stale: true}
			w.clusters["c2"] = c
		}, cluster("c2"), codes.AllFollowed, "ready", have{"c2": codes.HeartbeatMissing}},
	}
}

// TestReasons: each situation comes to its verdict, and every code of the registry
// is reached by one of them.
func TestReasons(t *testing.T) {
	t.Parallel()
	var reached []codes.Code
	for _, s := range situations() {
		w := newWorld(t)
		s.make(w)
		x := s.ask(w.view())
		if x.Verdict.Code != s.code || x.Verdict.Text != s.text {
			t.Errorf("%s: %s %s\nwant %s %s", s.name, x.Verdict.Code, x.Verdict.Text, s.code, s.text)
		}
		if e, _ := codes.Find(string(x.Verdict.Code)); e.Owner == codes.Reasons {
			reached = append(reached, x.Verdict.Code)
		}
		last := make(map[string]codes.Code)
		for _, step := range x.Steps {
			reached, last[step.Cluster] = append(reached, step.Code), step.Code
			if step.Text == "" || step.Keys == nil {
				t.Errorf("%s: %+v", s.name, step)
			}
		}
		for cluster, want := range s.having {
			if last[cluster] != want {
				t.Errorf("%s: of %s %s, want %s", s.name, cluster, last[cluster], want)
			}
		}
	}
	codestest.Reached(t, codes.Reasons, reached...)
}

// TestKeysAreNamed with their revisions, times, and what is wrong with them.
func TestKeysAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exports("c2", same)
	w.knows("c3", wire.Services, "default/web", "no JSON")
	keys := make(map[string]Key)
	for _, step := range Service(w.view(), "default", "web").Steps {
		for _, k := range step.Keys {
			keys[step.Cluster] = k
		}
	}
	if k := keys["c2"]; k.Key != "cilium/state/services/v1/c2/default/web" || k.Revision != 7 || !k.Read.Equal(epoch) || k.Refused != "" {
		t.Errorf("c2: %+v", k)
	}
	if k := keys["c3"]; !strings.HasSuffix(k.Key, "/c3/default/web") || k.Refused != "no JSON" {
		t.Errorf("c3: %+v", k)
	}
}

// TestExportsAreShownWhereClustersDisagree on the session affinity: of each who
// exports it, and of nobody when they agree.
func TestExportsAreShownWhereClustersDisagree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	export := func(cluster, affinity string, timeout time.Duration) {
		x := &services.Export{Cluster: cluster, Namespace: "default", Name: "web", Type: wire.ServiceExportClusterSetIP, Affinity: affinity, Timeout: timeout, Created: epoch}
		w.services.ApplyExports([]store.Change[services.Export]{{Name: "default/web", New: x}})
		w.knows(cluster, wire.ServiceExports, "default/web", "")
	}
	exported := func() map[string]string {
		said := make(map[string]string)
		for _, step := range Service(w.view(), "default", "web").Steps {
			_, text, _ := strings.Cut(step.Text, "; through the MCS API it exports it since 2026-11-22T01:02:03Z, with session affinity ")
			if key := "cilium/state/serviceexports/v1/" + step.Cluster + "/default/web"; text != "" && !slices.ContainsFunc(step.Keys, func(k Key) bool { return k.Key == key }) {
				t.Errorf("%s: %q without the key, of %v", step.Cluster, text, step.Keys)
			}
			said[step.Cluster] = text
		}
		return said
	}
	w.exports("c1", same)
	export("c1", wire.SessionAffinityNone, 0)
	export("c3", wire.SessionAffinityNone, 0)
	if got, want := exported(), map[string]string{"c1": "", "c2": "", "c3": ""}; !maps.Equal(got, want) {
		t.Errorf("they agree: %q", got)
	}
	export("c3", wire.SessionAffinityClientIP, time.Minute)
	if got, want := exported(), map[string]string{"c1": "None", "c2": "", "c3": "ClientIP for 60 s"}; !maps.Equal(got, want) {
		t.Errorf("they disagree: %q", got)
	}
	w.lose("c3")
	if got := exported()["c3"]; !strings.HasPrefix(got, "ClientIP for 60 s, not confirmed since 2026-11-22T01:02:03Z") {
		t.Errorf("one of them is lost: %q", got)
	}
}

// TestAbsenceNeedsEveryForm: no is said only of a cluster whose services are known
// as of now, in each form in which it exports them.
func TestAbsenceNeedsEveryForm(t *testing.T) {
	t.Parallel()
	synced, old, stale, syncing := remotecluster.FreshnessSynced, epoch.Add(-time.Minute), remotecluster.FreshnessStale, remotecluster.FreshnessSyncing
	for name, test := range map[string]struct {
		services, slices remotecluster.SourceStatus
		code             codes.Code
		asOf             time.Time
	}{
		"slices only":               {source(false, synced, epoch), source(true, synced, old), codes.PartNotExported, old},
		"slices only, not listed":   {source(false, synced, epoch), source(true, syncing, time.Time{}), codes.PartUnknown, time.Time{}},
		"slices only, stale":        {source(false, synced, epoch), source(true, stale, old), codes.PartUnknown, old},
		"both":                      {source(true, synced, old), source(true, synced, epoch), codes.PartNotExported, old},
		"both, slices stale":        {source(true, synced, epoch), source(true, stale, old), codes.PartUnknown, old},
		"both, slices not listed":   {source(true, synced, epoch), source(true, syncing, time.Time{}), codes.PartUnknown, time.Time{}},
		"both, services not listed": {source(true, syncing, time.Time{}), source(true, synced, epoch), codes.PartUnknown, time.Time{}},
		"services only":             {source(true, synced, epoch), source(false, remotecluster.FreshnessUnknown, time.Time{}), codes.PartNotExported, epoch},
	} {
		w := newWorld(t)
		c := w.clusters["c2"]
		c.Sources[wire.Services], c.Sources[wire.EndpointSlices] = test.services, test.slices
		for _, step := range Service(w.view(), "default", "web").Steps {
			if step.Cluster != "c2" {
				continue
			}
			if asOf := step.AsOf; step.Code != test.code || (asOf == nil) != test.asOf.IsZero() || asOf != nil && !asOf.Equal(test.asOf) {
				t.Errorf("%s: %s as of %v: %s", name, step.Code, asOf, step.Text)
			}
		}
	}
}

func source(exported bool, state remotecluster.FreshnessState, asOf time.Time) remotecluster.SourceStatus {
	return remotecluster.SourceStatus{Exported: exported, Synced: true, Freshness: remotecluster.Freshness{State: state, AsOf: asOf}}
}

// TestRefusedIsSaid: a copy from which entries are refused is not said to be whole.
func TestRefusedIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refuses("c2", wire.IPs, wire.ReasonBudget, 176)
	said := func(x Explanation, code codes.Code) string {
		for _, s := range x.Steps {
			if s.Code == code && strings.Contains(s.Text, "176") {
				return s.Text
			}
		}
		return ""
	}
	if got, want := said(Cluster(w.clusters["c2"]), codes.ResourceFresh), "0 ips, refused are 176 over its budget (keys)"; got != want {
		t.Errorf("the cluster: %q, want %q", got, want)
	}
	if got, want := said(address("10.0.0.1")(w.view()), codes.ClaimsRefused), "may claim it: 176 of its addresses are refused: over its budget (keys)"; got != want {
		t.Errorf("the address: %q, want %q", got, want)
	}
}
