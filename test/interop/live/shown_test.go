package live

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// agentShows reports whether the agent is ready, has refused nothing, and shows of the
// other clusters exactly these objects, as far as its API shows them: all nodes,
// shared services, identities and addresses, and no slices nor exports.
func agentShows(ctx context.Context, a *interop.Agent, want model.Objects) error {
	entries, err := accepted(ctx, a)
	if err == nil {
		err = enough(want, entries)
	}
	if err != nil {
		return err
	}
	nodes, err1 := agentapi.List[api.Node](ctx, a.Socket, "nodes")
	services, err2 := agentapi.List[api.Service](ctx, a.Socket, "services")
	identities, err3 := agentapi.List[api.Identity](ctx, a.Socket, "identities")
	ips, err4 := agentapi.List[api.IP](ctx, a.Socket, "ips")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	var got model.Objects
	for _, n := range nodes {
		got.Nodes = append(got.Nodes, nodeOf(n))
	}
	for _, s := range services {
		got.Services = append(got.Services, servicesOf(s)...)
	}
	for _, i := range identities {
		if i.Cluster != "" {
			got.Identities = append(got.Identities, identityOf(i))
		}
	}
	wanted, contested := map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
	for _, a := range want.Addresses {
		wanted[a.Prefix] = true
	}
	for _, ip := range ips {
		address := addressOf(ip)
		if wanted[address.Prefix] || ip.Kind == "endpoint" { // otherwise it is an address of a node
			contested[address.Prefix] = ip.Claims > 1
			got.Addresses = append(got.Addresses, address)
		}
	}
	return interop.Same(shown(want, contested), shown(got, contested))
}

// accepted returns the number of entries, if every cluster is ready and none of its entries is refused.
func accepted(ctx context.Context, a *interop.Agent) (map[model.Kind]int, error) {
	clusters, err := agentapi.List[api.Cluster](ctx, a.Socket, "clusters")
	entries := map[model.Kind]int{}
	for _, c := range clusters {
		switch {
		case len(c.Refusals) > 0:
			return nil, fmt.Errorf("of %s are refused: %+v", c.Name, c.Refusals)
		case !c.Well() || !c.Complete():
			return nil, fmt.Errorf("%s is %s: %s", c.Name, c.State, c.Message)
		}
		entries[model.Nodes] += c.Counts.Nodes
		entries[model.Services] += c.Counts.Services
		entries[model.EndpointSlices] += c.Counts.EndpointSlices
		entries[model.Identities] += c.Counts.Identities
		entries[model.Addresses] += c.Counts.IPs
	}
	return entries, err
}

// shown returns what the API shows of objects. The API does not mark the first prefix of a node, and in one cluster it
// does not show the owner of each claim of a prefix: for contested prefixes only their presence is compared.
func shown(o model.Objects, contested map[netip.Prefix]bool) model.Objects {
	var s model.Objects
	for _, n := range o.Nodes {
		s.Nodes = append(s.Nodes, shownNode(n))
	}
	for _, service := range o.Services {
		if service.Shared {
			s.Services = append(s.Services, shownService(service))
		}
	}
	s.Identities = o.Identities
	prefixes := map[netip.Prefix]bool{}
	for _, a := range interop.KeptByUs(model.Objects{Addresses: o.Addresses}).Addresses {
		if contested[a.Prefix] {
			a = model.Address{Prefix: a.Prefix}
		}
		if a.HostIP == netip.IPv6Unspecified() {
			a.HostIP = netip.Addr{} // an unspecified address means none
		}
		if !prefixes[a.Prefix] {
			s.Addresses = append(s.Addresses, model.Address{
				Prefix: a.Prefix, HostIP: a.HostIP, Identity: a.Identity, EncryptionKey: a.EncryptionKey,
				Namespace: a.Namespace, Pod: a.Pod,
			})
		}
		prefixes[a.Prefix] = true
	}
	return s
}

func shownNode(n model.Node) model.Node {
	n.Source = ""
	all := append(slices.Clone(n.IPv4SecondaryAllocCIDRs), n.IPv6SecondaryAllocCIDRs...)
	for _, p := range []netip.Prefix{n.IPv4AllocCIDR, n.IPv6AllocCIDR} {
		if p.IsValid() {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
	n.IPv4AllocCIDR, n.IPv6AllocCIDR, n.IPv4SecondaryAllocCIDRs, n.IPv6SecondaryAllocCIDRs = netip.Prefix{}, netip.Prefix{}, all, nil
	return n
}

func shownService(s model.Service) model.Service {
	shown := model.Service{
		Cluster: s.Cluster, Namespace: s.Namespace, Name: s.Name, Shared: true, IncludeExternal: s.IncludeExternal,
		Backends: s.Backends, Hostnames: map[netip.Addr]string{}, Zones: map[netip.Addr]model.Zone{},
	}
	for addr, name := range s.Hostnames {
		if name != "" {
			shown.Hostnames[addr] = name
		}
	}
	for addr, zone := range s.Zones {
		if zone.Zone != "" {
			shown.Zones[addr] = model.Zone{Zone: zone.Zone}
		}
	}
	return shown
}

func nodeOf(n api.Node) model.Node {
	node := model.Node{
		Cluster: n.Cluster, ClusterID: n.ClusterID, Name: n.Name,
		EncryptionKey: n.EncryptionKey, WireguardPubKey: n.WireguardPublicKey, BootID: n.BootID,
		Labels: n.Labels, Annotations: n.Annotations,
	}
	for _, a := range n.Addresses {
		node.IPAddresses = append(node.IPAddresses, model.NodeAddress{Type: a.Type, IP: netip.MustParseAddr(a.IP)})
	}
	for _, p := range n.PodCIDRs {
		node.IPv4SecondaryAllocCIDRs = append(node.IPv4SecondaryAllocCIDRs, netip.MustParsePrefix(p))
	}
	node.IPv4HealthIP, node.IPv6HealthIP = byFamily(n.HealthIPs)
	node.IPv4IngressIP, node.IPv6IngressIP = byFamily(n.IngressIPs)
	return node
}

func byFamily(texts []string) (v4, v6 netip.Addr) {
	for _, text := range texts {
		if addr := netip.MustParseAddr(text); addr.Is4() {
			v4 = addr
		} else {
			v6 = addr
		}
	}
	return v4, v6
}

// servicesOf are the services of the clusters that a service is made of.
func servicesOf(s api.Service) []model.Service {
	var all []model.Service
	for _, c := range s.Clusters {
		part := model.Service{
			Cluster: c.Cluster, Namespace: s.Namespace, Name: s.Name, Shared: c.Shared, IncludeExternal: c.IncludeExternal,
			Backends: map[netip.Addr]model.Ports{}, Hostnames: map[netip.Addr]string{}, Zones: map[netip.Addr]model.Zone{},
		}
		for _, b := range s.Backends {
			if b.Cluster != c.Cluster {
				continue
			}
			addr, ports := netip.MustParseAddr(b.IP), model.Ports{}
			for _, p := range b.Ports {
				ports[p.Name] = model.L4{Protocol: p.Protocol, Port: p.Port}
			}
			part.Backends[addr], part.Hostnames[addr], part.Zones[addr] = ports, b.Hostname, model.Zone{Zone: b.Zone}
		}
		all = append(all, part)
	}
	return all
}

func identityOf(i api.Identity) model.Identity {
	identity := model.Identity{Cluster: i.Cluster, ID: i.ID}
	for key, value := range i.Labels {
		source, key, _ := strings.Cut(key, ":")
		identity.Labels = append(identity.Labels, model.Label{Source: source, Key: key, Value: value})
	}
	slices.SortFunc(identity.Labels, func(a, b model.Label) int { return strings.Compare(a.Key, b.Key) })
	return identity
}

func addressOf(ip api.IP) model.Address {
	a := model.Address{
		Cluster: ip.Cluster, Prefix: netip.MustParsePrefix(ip.Prefix),
		Identity: ip.Identity, EncryptionKey: ip.EncryptionKey, Namespace: ip.Namespace, Pod: ip.Pod,
	}
	if ip.HostIP != "" {
		a.HostIP = netip.MustParseAddr(ip.HostIP)
	}
	return a
}
