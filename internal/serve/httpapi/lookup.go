package httpapi

import (
	"net/http"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/reasons"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// lookup answers with the owner of an address. An address that no cluster claims has no match; this is not an error.
func (s *Server) lookup(w http.ResponseWriter, r *http.Request) error {
	text := r.PathValue("address")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return badRequest("address %q: want an IPv4 or IPv6 address", text)
	}
	addr = addr.Unmap()
	found := s.View.Lookup(addr)
	v := found.Snapshot
	why := reasons.Address(s.factsOf(v), addr, found.Found)
	answer := api.Lookup{IP: addr.String(), Why: why, Services: converted(found.Services, toServiceName), Unconfirmed: v.Unconfirmed(wire.IPs, wire.Nodes)}
	answer.Candidates = toCandidates(found.Found, why)
	if winner := found.Winner(); winner != nil {
		answer.Match = &answer.Candidates[0].Entry
		answer.Identity = identityOf(winner, found.Identity)
		if found.Node != nil {
			answer.Node = new(toNode(found.Node))
		}
		if _, known := v.Known[winner.Cluster().Name]; known {
			answer.Freshness = new(toFreshness(found.Freshness, s.now()))
		}
	}
	writeJSON(w, answer)
	return nil
}

// identityOf returns the identity of an entry, which may be a reserved one.
func identityOf(e *ipcache.Entry, found *identities.Identity) *api.Identity {
	if name, ok := wire.ReservedIdentityName(e.Identity()); ok {
		return &api.Identity{ID: e.Identity(), Labels: map[string]string{wire.LabelSourceReserved + ":" + name: ""}}
	}
	if found == nil {
		return nil
	}
	return new(toIdentity(found))
}

func toServiceName(g *services.Global) api.ServiceName {
	return api.ServiceName{Namespace: g.Namespace, Name: g.Name}
}
