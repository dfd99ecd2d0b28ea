package faults

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// mark is an object of the view as its followers have it: each replacement is an event to them, even with equal
// contents.
type mark struct {
	object   any
	revision uint64
	cluster  string
	key      string // under which the cluster publishes it
}

// sight is the contents of the view at one moment.
type sight struct {
	picture picture
	marks   map[string]mark
}

// has reports whether what the cluster published under the key is shown.
func (s sight) has(cluster, key string) bool {
	_, there := s.marks[cluster+" "+key]
	return there
}

func (s sight) mark(m mark, suffix string) { s.marks[m.cluster+" "+m.key+suffix] = m }

// look returns the view in the model's form.
func (w *world) look() sight {
	s := sight{picture{}, map[string]mark{}}
	txn := w.db.ReadTxn()
	for n, rev := range w.view.Nodes.Table().All(txn) {
		if n.Name != canaryName {
			s.picture[n.Cluster+" node "+n.Name] = seenNode(n)
			s.mark(mark{n, rev, n.Cluster, wire.Nodes.Key(n.Cluster, false, n.Name)}, "")
		}
	}
	for x, rev := range w.view.Services.Exported().All(txn) {
		if x.Name != canaryName {
			s.picture[x.Cluster+" service "+x.FullName()] = exportedText(x.Shared, x.ClusterID, x.Labels, seenBackends(x))
			s.mark(mark{x, rev, x.Cluster, wire.Services.Key(x.Cluster, false, x.FullName())}, "")
		}
	}
	for x, rev := range w.view.Services.Slices().All(txn) {
		if x.Name != canaryName {
			s.picture[x.Cluster+" slice "+x.Namespace+"/"+x.Name] = slicedText(seenEndpoints(x.Endpoints()))
			s.mark(mark{x, rev, x.Cluster, wire.EndpointSlices.Key(x.Cluster, false, x.Namespace+"/"+x.Name)}, "")
		}
	}
	for g := range w.view.Services.Global().All(txn) {
		if g.Name != canaryName {
			s.picture["global "+g.FullName()] = seenGlobal(g)
		}
	}
	for id, rev := range w.view.Identities.Table().All(txn) {
		if id.ID != canaryID(id.ClusterID) {
			s.picture[fmt.Sprintf("%s identity %d", id.Cluster, id.ID)] = id.Labels.Wire().Encode()
			s.mark(mark{id, rev, id.Cluster, wire.IdentityKey(id.ID)}, "")
		}
	}
	for winner := range w.view.IPs.Snapshot().From(netip.Prefix{}) {
		w.lookAt(winner.Prefix(), s)
	}
	return s
}

// lookAt adds all claims on a prefix.
func (w *world) lookAt(p netip.Prefix, s sight) {
	var claims []claim
	for _, e := range w.view.IPs.Lookup(p.Addr()).Claims {
		if e.Prefix() != p || strings.HasPrefix(p.String(), "10.254.") {
			continue
		}
		host := e.HostIP()
		c := claim{
			kind: slices.Index([]ipcache.Kind{
				ipcache.KindHost, ipcache.KindCIDR, ipcache.KindNode, ipcache.KindPodCIDR, ipcache.KindHealth, ipcache.KindIngress,
			}, e.Kind()),
			id: e.Cluster().ID, cluster: e.Cluster().Name, node: e.NodeName(),
		}
		m := mark{e, 0, c.cluster, wire.IPs.Key(c.cluster, false, p.Addr().String())}
		switch e.Kind() {
		case ipcache.KindHost:
			s.mark(m, "")
		case ipcache.KindCIDR: // its key may have host bits, which an entry does not show
		default:
			m.key = wire.Nodes.Key(c.cluster, false, c.node)
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
		s.picture["claims on "+p.String()] = claimsText(claims)
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
