package reasons

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// situation is a world and a question about it; it leads to a verdict, and has steps, in words.
type situation struct {
	name   string
	make   func(*world)
	ask    func(*Facts) api.Explanation
	code   codes.Code
	text   string
	having map[string]codes.Code // steps by cluster
}

func web(v *Facts) api.Explanation { return Service(v, "default", "web") }

func address(text string) func(*Facts) api.Explanation {
	return func(v *Facts) api.Explanation {
		a := netip.MustParseAddr(text)
		return Address(v, a, v.IPs.Lookup(a))
	}
}

func number(id uint32) func(*Facts) api.Explanation {
	return func(v *Facts) api.Explanation { return Identity(v, id) }
}

func node(cluster, name string) func(*Facts) api.Explanation {
	return func(v *Facts) api.Explanation { return Node(v, cluster, name) }
}

func cluster(name string) func(*Facts) api.Explanation {
	return func(v *Facts) api.Explanation { return Cluster(v.Clusters[name]) }
}

func situations() []situation {
	type have = map[string]codes.Code
	return []situation{
		{"all share it", func(w *world) { w.exports("c1", same); w.exports("c2", same) }, web, codes.ServiceGlobal, "global: shared by c1 and c2; 2 backends are in use", have{"c1": codes.PartUsed, "c2": codes.PartUsed, "c3": codes.PartNotExported}},
		{"an observer", func(w *world) { w.own = ""; delete(w.clusters, "c1"); w.exports("c2", same) }, web, codes.ServiceGlobal, "global: shared by c2; 1 backend is in use", have{"c2": codes.PartUsed, "c3": codes.PartNotExported}},
		{"nobody has it", func(*world) {}, web, codes.ServiceNowhere, "no cluster exports default/web", have{"c1": codes.PartNotExported, "c3": codes.PartNotExported}},
		{"nobody is known to have it", func(w *world) { w.lose("c3") }, web, codes.ServiceUnknown, "no cluster is known to share default/web, and the services of c3 are not known as of now", have{"c3": codes.PartUnknown}},
		{"the own cluster is not read", func(w *world) { delete(w.clusters, "c1") }, web, codes.ServiceUnknown, "no cluster is known to share default/web, and the services of c1 are not known as of now", have{"c1": codes.PartUnknown}},
		{"the own one is not global", func(w *world) { w.exports("c1", alone); w.exports("c2", same) }, web, codes.OwnNotGlobal, "not global: the service of the own cluster c1 is not annotated as global", have{"c1": codes.PartUsed, "c2": codes.PartStandsBy}},
		{"others do not export it", func(w *world) { w.exports("c1", same) }, web, codes.NotExported, "not global: cluster c2 and c3 do not export it", have{"c1": codes.PartUsed, "c2": codes.PartNotExported, "c3": codes.PartNotExported}},
		{"another may export it", func(w *world) { w.exports("c1", same); w.lose("c2") }, web, codes.ServiceUnknown, "not global as far as is known: the services of c2 are not known as of now", have{"c2": codes.PartUnknown}},
		{"there is no other", func(w *world) { delete(w.clusters, "c2"); delete(w.clusters, "c3"); w.exports("c1", same) }, web, codes.NotExported, "not global: there is no cluster other than c1", nil},
		{"others do not share it", func(w *world) { w.exports("c1", same); w.exports("c2", hidden) }, web, codes.NotShared, "not global: c2 publishes it with shared=false", have{"c2": codes.PartNotShared}},
		{"nobody shares it", func(w *world) { w.exports("c2", hidden) }, web, codes.NotShared, "not global: c2 publishes it with shared=false", have{"c2": codes.PartNotShared}},
		{"no own service", func(w *world) { w.exports("c2", same) }, web, codes.NoOwnService, "not used here: c2 shares it, and the own cluster c1 has no service of this name", have{"c1": codes.PartNotExported, "c2": codes.PartUsed}},
		{"affinity local", func(w *world) { w.exports("c1", affinity(wire.AffinityLocal)); w.exports("c2", same) }, web, codes.AffinityLocal, "global, and only the own backends are used: standing by: the affinity is local and a local backend is active", have{"c1": codes.PartUsed, "c2": codes.PartStandsBy}},
		{"affinity remote", func(w *world) { w.exports("c1", affinity(wire.AffinityRemote)); w.exports("c2", same) }, web, codes.AffinityRemote, "global, and only the backends of others are used: standing by: the affinity is remote and a remote backend is healthy", have{"c1": codes.PartStandsBy, "c2": codes.PartUsed}},
		{"no backends", func(w *world) { w.exports("c1", empty); w.exports("c2", empty) }, web, codes.NoBackends, "global, and without backends: no cluster that shares it has any", have{"c1": codes.PartEmpty, "c2": codes.PartEmpty}},
		{"refused", func(w *world) { w.knows("c2", wire.Services, "default/web", "no JSON") }, web, codes.RefusedEverywhere, "not global: the entry of c2 is refused", have{"c2": codes.PartRefused}},
		{"refused, and the own one is global", func(w *world) { w.exports("c1", same); w.knows("c2", wire.Services, "default/web", "no JSON") }, web, codes.RefusedEverywhere, "not global: the entry of c2 is refused", have{"c2": codes.PartRefused}},
		{"withheld", func(w *world) { w.exports("c1", same); w.exports("c2", same); w.Services.Withhold("c2", true) }, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartWithheld}},
		{"withdrawn", func(w *world) {
			w.exports("c1", same)
			w.exports("c2", same)
			w.Services.SetUse("c2", services.Withdrawn)
		}, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartWithheld}},
		{"demoted", func(w *world) {
			w.exports("c1", same)
			w.exports("c2", same)
			w.Services.SetUse("c2", services.Demoted)
		}, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartDemoted}},
		{"the last ones", func(w *world) {
			w.exports("c1", empty)
			w.exports("c2", same)
			w.Services.SetUse("c2", services.Withdrawn)
		}, web, codes.BackendsWithheldBy, "global: shared by c2; the backends of c2 are not used as usual", have{"c2": codes.PartKept}},

		{"backends that no remote can have", func(w *world) {
			w.Services.JudgeBackends(loopback{})
			w.exports("c1", same)
			w.exports("c2", func(s *services.Service) { s.Backends[0].IP = netip.MustParseAddr("127.0.0.1") })
			w.exports("c3", same)
		}, web, codes.ServiceGlobal, "global: shared by c1, c2 and c3; 2 backends are in use", have{"c1": codes.PartUsed, "c2": codes.PartBarred, "c3": codes.PartUsed}},
		{"no backends but those that no remote can have", func(w *world) {
			w.Services.JudgeBackends(loopback{})
			w.exports("c1", empty)
			w.exports("c2", func(s *services.Service) { s.Backends[0].IP = netip.MustParseAddr("127.0.0.1") })
		}, web, codes.NoBackends, "global, and without backends that may be used: those of c2 are on addresses that no remote can have", have{"c1": codes.PartEmpty, "c2": codes.PartBarred}},

		{"a claim inside the own networks", func(w *world) {
			w.IPs = ipcache.New(ipcache.Rules{Own: []ipcache.Own{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), What: "pod network"}}})
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressUnclaimed, "no cluster claims 10.0.0.1", have{"c2": codes.ClaimInOwnNetwork}},
		{"a claim on an address for special use", func(w *world) { w.claims("c2", "127.0.0.1/32", ipcache.KindHost, "") }, address("127.0.0.1"), codes.AddressOwned, "127.0.0.1 is that of c2, whose claim breaks a rule: see the first step", have{"c2": codes.ClaimSpecialUse}},
		{"a claim in the pod network of another", func(w *world) {
			w.claims("c2", "10.0.0.0/24", ipcache.KindPodCIDR, "n1")
			w.claims("c3", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c3, whose claim breaks a rule: see the first step", have{"c2": codes.ClaimShorter, "c3": codes.ClaimInForeignNetwork}},
		{"a claim in the pod network of another, enforced", func(w *world) {
			w.IPs = ipcache.New(ipcache.Rules{Enforce: true})
			w.claims("c2", "10.0.0.0/24", ipcache.KindPodCIDR, "n1")
			w.claims("c3", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressInNetwork, "no cluster claims 10.0.0.1 itself; it is in 10.0.0.0/24 of c2", have{"c2": codes.ClaimWon, "c3": codes.ClaimInForeignNetwork}},
		{"a claim with a privileged identity", func(w *world) {
			w.IPs = ipcache.New(ipcache.Rules{Enforce: true})
			w.IPs.Apply([]ipcache.Op{{New: ipcache.NewEntry(ipcache.Spec{
				Prefix: netip.MustParsePrefix("10.0.0.1/32"), Cluster: &ipcache.Claimant{Name: "c2", ID: 2}, Source: wire.SourceClusterMesh, Identity: wire.IdentityKubeAPIServer,
			})}})
		}, address("10.0.0.1"), codes.AddressUnclaimed, "no cluster claims 10.0.0.1", have{"c2": codes.ClaimReservedIdentity}},
		{"a claim that is refused", func(w *world) { w.knows("c2", wire.IPs, "10.0.0.1", "policy: not granted") }, address("10.0.0.1"), codes.AddressUnclaimed, "no cluster claims 10.0.0.1", have{"c2": codes.ClaimRefused}},
		{"more claims than have steps", func(w *world) {
			for i := range 3 * ipcache.MaxReported {
				w.claims([]string{"c2", "c3"}[i%2], "10.0.0.1/32", ipcache.KindNode, fmt.Sprint("n", i))
			}
		}, address("10.0.0.1"), codes.AddressContested, "10.0.0.1/32 is claimed by c2 and c3; c2 counts", have{"c2": codes.ClaimWon, "c3": codes.ClaimLost, "": codes.ClaimsUntold}},
		{"more barred claims than have steps", func(w *world) {
			w.IPs = ipcache.New(ipcache.Rules{Own: []ipcache.Own{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), What: "pod network"}}})
			for i := range 2 * ipcache.MaxReported {
				w.claims("c2", "10.0.0.1/32", ipcache.KindNode, fmt.Sprint("n", i))
			}
		}, address("10.0.0.1"), codes.AddressUnclaimed, "no cluster claims 10.0.0.1", have{"c2": codes.ClaimInOwnNetwork, "": codes.ClaimsUntold}},
		{"one claim", func(w *world) { w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "") }, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c2", have{"c2": codes.ClaimWon}},
		{"a network", func(w *world) { w.claims("c2", "10.0.0.0/24", ipcache.KindCIDR, "") }, address("10.0.0.1"), codes.AddressInNetwork, "no cluster claims 10.0.0.1 itself; it is in 10.0.0.0/24 of c2", have{"c2": codes.ClaimWon}},
		{"a network and an address", func(w *world) {
			w.claims("c3", "10.0.0.0/24", ipcache.KindCIDR, "")
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c2", have{"c2": codes.ClaimWon, "c3": codes.ClaimShorter}},
		{"two claims", func(w *world) {
			w.claims("c3", "10.0.0.1/32", ipcache.KindHost, "")
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
		}, address("10.0.0.1"), codes.AddressContested, "10.0.0.1/32 is claimed by c2 and c3; c2 counts", have{"c2": codes.ClaimWon, "c3": codes.ClaimLost}},
		{"no claim", func(*world) {}, address("10.0.0.1"), codes.AddressUnclaimed, "no cluster claims 10.0.0.1", nil},
		{"no claim that is known", func(w *world) { w.lose("c3") }, address("10.0.0.1"), codes.AddressUnknown, "no cluster is known to claim 10.0.0.1, and the addresses of c3 are not known as of now", have{"c3": codes.ClaimsUnknown}},

		{"an identity", func(w *world) { w.hasIdentity("c2", 131073); w.knows("c2", wire.Identities, "131073", "") }, number(131073), codes.IdentityKnown, "131073 is known from c2", have{"c2": codes.MappingRead}},
		{"a reserved one", func(*world) {}, number(1), codes.IdentityReserved, "1 is reserved: host", nil},
		{"an identity that nobody has", func(*world) {}, number(131073), codes.IdentityNowhere, "no cluster has published 131073", nil},
		{"an identity that nobody is known to have", func(w *world) { w.lose("c2") }, number(131073), codes.IdentityUnknown, "no cluster is known to have published 131073, and the identities of c2 are not known as of now", have{"c2": codes.MappingUnknown}},
		{"an identity that is refused", func(w *world) { w.knows("c2", wire.Identities, "131073", "out of range") }, number(131073), codes.IdentityNowhere, "no cluster has published 131073", have{"c2": codes.MappingRefused}},

		{"a node", func(w *world) { w.hasNode("c2", "n1", "192.168.0.1") }, node("c2", "n1"), codes.NodeKnown, "known, and its addresses count as its own", have{"c2": codes.NodeClaimCounts}},
		{"a node of long ago", func(w *world) { w.hasNode("c2", "n1", "192.168.0.1"); w.lose("c2") }, node("c2", "n1"), codes.NodeNotAsOfNow, "known as of 2026-11-22T01:02:03Z: the nodes of c2: not confirmed since 2026-11-22T01:02:03Z (MESH-1206 not connected)", nil},
		{"a node with another's address", func(w *world) { w.hasNode("c3", "n1", "192.168.0.1"); w.hasNode("c2", "n2", "192.168.0.1") }, node("c3", "n1"), codes.NodeAddressLost, "its address 192.168.0.1 counts as another's", have{"c3": codes.NodeClaimLost}},
		{"no such node", func(*world) {}, node("c2", "n1"), codes.NodeNowhere, "c2 has no node n1", nil},
		{"no such node, as far as is known", func(w *world) { w.lose("c2") }, node("c2", "n1"), codes.NodeUnknown, "it is not known whether c2 has a node n1: its nodes: not confirmed since 2026-11-22T01:02:03Z (MESH-1206 not connected)", nil},
		{"a node of an unknown cluster", func(*world) {}, node("c9", "n1"), codes.NodeUnknown, "it is not known whether c9 has a node n1: its nodes: this agent does not read that cluster", nil},

		{"refused for the budget", func(w *world) { w.refuses("c2", wire.Services, wire.ReasonBudget, 3) }, web, codes.ServiceUnknown, "no cluster is known to share default/web, and not all services of c2 are known: some are refused", have{"c2": codes.PartsRefused, "c3": codes.PartNotExported}},
		{"another may export it, for all that is refused", func(w *world) {
			w.exports("c1", same)
			w.lose("c3")
			w.refuses("c2", wire.EndpointSlices, wire.ReasonTooLarge, 3)
		}, web, codes.ServiceUnknown, "not global as far as is known: the services of c3 are not known as of now, and not all services of c2 are known: some are refused", have{"c2": codes.PartsRefused}},
		{"addresses are refused", func(w *world) { w.refuses("c2", wire.IPs, wire.ReasonBudget, 176) }, address("10.0.0.1"), codes.AddressUnknown, "no cluster is known to claim 10.0.0.1, and not all addresses of c2 are known: some are refused", have{"c2": codes.ClaimsRefused}},
		{"addresses are refused, and a network is known", func(w *world) {
			w.claims("c2", "10.0.0.0/24", ipcache.KindCIDR, "")
			w.refuses("c2", wire.IPs, wire.ReasonBudget, 176)
		}, address("10.0.0.1"), codes.AddressUnknown, "no cluster is known to claim 10.0.0.1 itself, which is in 10.0.0.0/24 of c2; but not all addresses of c2 are known: some are refused", have{"c2": codes.ClaimsRefused}},
		{"addresses are refused, and this one is known", func(w *world) {
			w.claims("c2", "10.0.0.1/32", ipcache.KindHost, "")
			w.refuses("c2", wire.IPs, wire.ReasonBudget, 176)
		}, address("10.0.0.1"), codes.AddressOwned, "10.0.0.1 is that of c2", have{"c2": codes.ClaimsRefused}},
		{"the policy refuses addresses", func(w *world) { w.refuses("c2", wire.IPs, wire.ReasonPolicy, 176) }, address("10.0.0.1"), codes.AddressUnclaimed, "no cluster claims 10.0.0.1", nil},
		{"identities are refused", func(w *world) { w.refuses("c2", wire.Identities, wire.ReasonPolicy, 2) }, number(131073), codes.IdentityUnknown, "no cluster is known to have published 131073, and not all identities of c2 are known: some are refused", have{"c2": codes.MappingsRefused}},
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
