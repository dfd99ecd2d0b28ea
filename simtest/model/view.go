package model

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mark is an object of the view as its followers have it: each replacement is an event to them, even with equal
// contents.
type Mark struct {
	Object   any
	Revision uint64
	Cluster  string
	Key      string // under which the cluster publishes it
}

// Sight is the contents of the view at one moment.
type Sight struct {
	Picture Picture
	Marks   map[string]Mark
}

// Has reports whether what the cluster published under the key is shown.
func (s Sight) Has(cluster, key string) bool {
	_, there := s.Marks[cluster+" "+key]
	return there
}

func (s Sight) mark(m Mark, suffix string) { s.Marks[m.Cluster+" "+m.Key+suffix] = m }

// Hidden are objects that are left out of a [Sight], such as canaries. The zero value hides none.
type Hidden struct {
	Name      string // of nodes, services and slices
	Identity  func(*identities.Identity) bool
	Addresses netip.Prefix
}

// Look returns the view in the model's form.
func Look(t *clustermesh.Tables, h Hidden) Sight {
	s := Sight{Picture{}, map[string]Mark{}}
	txn := t.DB.ReadTxn()
	for n, rev := range t.Nodes.Table().All(txn) {
		if n.Name != h.Name {
			s.Picture[n.Cluster+" node "+n.Name] = seenNode(n)
			s.mark(Mark{n, rev, n.Cluster, wire.Nodes.Key(n.Cluster, false, n.Name)}, "")
		}
	}
	for x, rev := range t.Services.Exported().All(txn) {
		if x.Name != h.Name {
			s.Picture[x.Cluster+" service "+x.FullName()] = exportedText(x.Shared, x.ClusterID, x.Labels, seenBackends(x))
			s.mark(Mark{x, rev, x.Cluster, wire.Services.Key(x.Cluster, false, x.FullName())}, "")
		}
	}
	for x, rev := range t.Services.Slices().All(txn) {
		if x.Name != h.Name {
			s.Picture[x.Cluster+" slice "+x.Namespace+"/"+x.Name] = slicedText(seenEndpoints(x.Endpoints()))
			s.mark(Mark{x, rev, x.Cluster, wire.EndpointSlices.Key(x.Cluster, false, x.Namespace+"/"+x.Name)}, "")
		}
	}
	for g := range t.Services.Global().All(txn) {
		if g.Name != h.Name {
			s.Picture["global "+g.FullName()] = seenGlobal(g)
		}
	}
	for id, rev := range t.Identities.Table().All(txn) {
		if h.Identity == nil || !h.Identity(id) {
			s.Picture[fmt.Sprintf("%s identity %d", id.Cluster, id.ID)] = id.Labels.Wire().Encode()
			s.mark(Mark{id, rev, id.Cluster, wire.IdentityKey(id.ID)}, "")
		}
	}
	for winner := range t.IPs.Snapshot().From(netip.Prefix{}) {
		if p := winner.Prefix(); !h.Addresses.IsValid() || !h.Addresses.Contains(p.Addr()) {
			lookAt(t.IPs, p, s)
		}
	}
	return s
}

// lookAt adds all claims on a prefix.
func lookAt(ips *ipcache.Cache, p netip.Prefix, s Sight) {
	var claims []claim
	for _, e := range ips.Lookup(p.Addr()).Claims {
		if e.Prefix() != p {
			continue
		}
		host := e.HostIP()
		c := claim{
			kind: slices.Index([]ipcache.Kind{
				ipcache.KindHost, ipcache.KindCIDR, ipcache.KindNode, ipcache.KindPodCIDR, ipcache.KindHealth, ipcache.KindIngress,
			}, e.Kind()),
			id: e.Cluster().ID, cluster: e.Cluster().Name, node: e.NodeName(),
		}
		m := Mark{e, 0, c.cluster, wire.IPs.Key(c.cluster, false, p.Addr().String())}
		switch e.Kind() {
		case ipcache.KindHost:
			s.mark(m, "")
		case ipcache.KindCIDR: // its key may have host bits, which an entry does not show
		default:
			m.Key = wire.Nodes.Key(c.cluster, false, c.node)
			s.mark(m, " "+p.String()+" "+claimKinds()[c.kind])
		}
		owner := c.node
		if owner == "" {
			owner = e.Namespace() + "/" + e.Pod()
		}
		c.says = says(e.Identity(), e.EncryptionKey(), host, owner, len(e.Ports()))
		claims = append(claims, c)
	}
	if len(claims) > 0 {
		s.Picture["claims on "+p.String()] = claimsText(claims)
	}
}

func seenNode(n *nodes.Node) string {
	var addresses []string
	for _, a := range n.Addresses {
		addresses = append(addresses, a.Type+"="+a.IP.String())
	}
	return fmt.Sprintf("id %d addresses %v pods %v health %v ingress %v key %d boot %s labels %v",
		n.ClusterID, addresses, n.PodCIDRs, n.HealthIPs, n.IngressIPs, n.EncryptionKey, n.BootID, n.Labels)
}

func seenBackends(s *services.Service) []backend {
	var out []backend
	for _, b := range s.Backends {
		var ports []string
		for _, p := range b.Ports {
			ports = append(ports, fmt.Sprintf("%s %s %d", p.Name, p.Protocol, p.Port))
		}
		slices.Sort(ports)
		out = append(out, backend{b.IP, ports, b.Hostname, b.Zone})
	}
	return out
}

func seenEndpoints(all iter.Seq[services.Backend]) []endpoint {
	var out []endpoint
	for b := range all {
		out = append(out, seenEndpoint(b))
	}
	return out
}

func seenEndpoint(b services.Backend) endpoint {
	return endpoint{b.IP, b.Zone, b.Node, b.Ready(), b.Serving(), b.Terminating()}
}

func seenGlobal(g *services.Global) string {
	var who, what []string
	for _, p := range g.Parts {
		who = append(who, p.Cluster)
	}
	for p, b := range g.Backends() {
		what = append(what, fmt.Sprint(p.Cluster, " ", seenEndpoint(b)))
	}
	slices.Sort(who)
	slices.Sort(what)
	return fmt.Sprintf("of %v backends %v", who, what)
}
