package api

import (
	"net/http"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// lookup answers whose address this is. An address that nobody claims has no
// match, which is an answer and no error.
func (s *Server) lookup(w http.ResponseWriter, r *http.Request) error {
	text := r.PathValue("address")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return badRequest("address %q: want an IPv4 or IPv6 address", text)
	}
	addr = addr.Unmap()
	clusters := s.clustersNow() // before the claims: as fresh as they are said to be, they are at least
	found := s.IPs.Lookup(addr)
	txn, with := s.byAddress.Find(addr) // not older than the claims: what they refer to is in it, once it was published
	v := &view{moment: moment{txn: txn}, clusters: clusters}
	why := reasons.Address(s.reasonsView(v), addr, found)
	answer := Lookup{IP: addr.String(), Why: why, Services: toServiceNames(with), Unconfirmed: v.unconfirmed(wire.IPs, wire.Nodes)}
	answer.Candidates = toCandidates(found, why)
	if len(found.Claims) == 0 {
		writeJSON(w, answer)
		return nil
	}
	winner := found.Claims[0]
	answer.Match = &answer.Candidates[0].Entry
	answer.Identity = s.identityOf(v, winner)
	answer.Node = s.nodeOf(v, winner)
	if c, known := clusters[winner.Cluster().Name]; known {
		f := toFreshness(c.Sources[resourceOf(winner)].Freshness, s.now())
		answer.Freshness = &f
	}
	writeJSON(w, answer)
	return nil
}

// identityOf finds the identity of an entry: in its own cluster, or else the
// one that has the number at all. Reserved ones are in no table.
func (s *Server) identityOf(v *view, e *ipcache.Entry) *Identity {
	if name, ok := wire.ReservedIdentityName(e.Identity()); ok {
		return &Identity{ID: e.Identity(), Labels: map[string]string{wire.LabelSourceReserved + ":" + name: ""}}
	}
	var found *allocator.Identity
	for i := range allocator.ByID(v.txn, s.Identities, e.Identity()) {
		if found == nil || i.Cluster == e.Cluster().Name {
			found = i
		}
	}
	if found == nil {
		return nil
	}
	id := toIdentity(found)
	return &id
}

// nodeOf finds the node that hosts an entry.
func (s *Server) nodeOf(v *view, e *ipcache.Entry) *Node {
	cluster := e.Cluster().Name
	if name := e.NodeName(); name != "" {
		if n, _, found := s.Nodes.Get(v.txn, nodes.ByName(cluster, name)); found {
			node := toNode(n)
			return &node
		}
	}
	if !e.HostIP().IsValid() {
		return nil
	}
	for n := range s.Nodes.List(v.txn, nodes.ByAddress(e.HostIP())) {
		if n.Cluster == cluster {
			node := toNode(n)
			return &node
		}
	}
	return nil
}

func toServiceNames(all []*services.Global) []ServiceName {
	names := make([]ServiceName, 0, len(all))
	for _, g := range all {
		names = append(names, ServiceName{Namespace: g.Namespace, Name: g.Name})
	}
	return names
}
