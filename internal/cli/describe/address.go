package describe

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/lookup"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// addressCount is a number of addresses. The count stops after one page.
type addressCount struct {
	Count int `json:"count"`
	// AtLeast is true when there are more than Count.
	AtLeast bool `json:"atLeast"`
}

func (n addressCount) String() string {
	text := printer.Counted(n.Count, "address", "addresses")
	if n.AtLeast {
		return "at least " + text
	}
	return text
}

type nodeDescription struct {
	Node      *api.Node    `json:"node"`
	Cluster   *api.Cluster `json:"cluster"` // null when it is not a remote cluster
	Addresses []ownAddress `json:"addresses"`
	// Endpoints is the number of pod addresses in the node's pod CIDRs; null without pod CIDRs.
	Endpoints *addressCount `json:"endpoints"`

	Why *api.Explanation `json:"why"`
}

// ownAddress is an address of a node and its entry in the view.
type ownAddress struct {
	api.NodeAddress
	Entry *api.IP `json:"entry"` // null when the view has no claim to it
}

func describeNode(ctx context.Context, g *gatherer, n *api.Node) description {
	d := &nodeDescription{Node: n, Addresses: []ownAddress{}, Why: g.why(ctx, "nodes", n.Cluster, n.Name), Cluster: g.cluster(ctx, n.Cluster)}
	for _, a := range n.Addresses {
		if g.err != nil {
			break
		}
		d.Addresses = append(d.Addresses, ownAddress{a, get[api.IP](ctx, g, "ips", a.IP)})
		if resource.IsNotFound(g.err) {
			g.err = nil
		}
	}
	d.Endpoints = endpointsOn(ctx, g, n)
	return d
}

// endpointsOn counts the addresses in the node's pod CIDRs that the node hosts: each CIDR is one range of the view.
// It returns nil without pod CIDRs.
func endpointsOn(ctx context.Context, g *gatherer, n *api.Node) *addressCount {
	if len(n.PodCIDRs) == 0 {
		return nil
	}
	sum := new(addressCount)
	for _, cidr := range n.PodCIDRs {
		ips, cut := list[api.IP](ctx, g, "ips", client.Query{Cluster: n.Cluster, Prefix: cidr, Limit: api.MaxLimit})
		sum.AtLeast = sum.AtLeast || cut
		for _, ip := range ips {
			if ip.Kind == "endpoint" && slices.ContainsFunc(n.Addresses, func(a api.NodeAddress) bool { return a.IP == ip.HostIP }) {
				sum.Count++
			}
		}
	}
	return sum
}

func (d *nodeDescription) page(p *printer.Page, now time.Time) {
	n := d.Node
	p.Line("Node %s", printer.Painted{Text: n.Cluster + "/" + n.Name, Color: printer.Bold})
	p.Blank()
	endpoints := "not counted: it has no pod CIDRs"
	if d.Endpoints != nil {
		endpoints = d.Endpoints.String()
	}
	p.Fields(printer.Present(
		printer.F("Cluster", printer.OrText(clusterLine(d.Cluster), fmt.Sprintf("%s (ID %d)", n.Cluster, n.ClusterID))...),
		printer.F("Known as of", freshnessOf(d.Cluster, func(c *api.Cluster) *api.Freshness { return &c.Freshness.Nodes })),
		printer.F("Pod CIDRs", n.PodCIDRs...),
		printer.F("Pods in them", endpoints),
		printer.F("Health addresses", n.HealthIPs...),
		printer.F("Ingress addresses", n.IngressIPs...),
		printer.F("Identity", strconv.Itoa(int(n.Identity))),
		printer.F("Encryption key", printer.Number(uint32(n.EncryptionKey))),
		printer.F("WireGuard key", n.WireguardPublicKey),
		printer.F("Boot ID", n.BootID),
		printer.F("Labels", printer.LabelLines(n.Labels)...),
		printer.F("Annotations", printer.LabelLines(n.Annotations)...),
	)...)
	if len(d.Addresses) > 0 {
		p.Section("Addresses")
		printer.Rows(p, ownAddressTable(n), d.Addresses)
	}
	explain.WriteWhy(p, d.Why, now)
}

func ownAddressTable(n *api.Node) printer.Table[ownAddress] {
	return printer.Table[ownAddress]{
		{Title: "TYPE", Text: func(a ownAddress) string { return a.Type }},
		{Title: "ADDRESS", Text: func(a ownAddress) string { return a.IP }},
		{Title: "IN THE VIEW", Text: func(a ownAddress) string {
			switch e := a.Entry; {
			case e == nil:
				return "not claimed"
			case e.Cluster != n.Cluster:
				return fmt.Sprintf("belongs to cluster %s, see 'mesh-agent lookup %s'", e.Cluster, a.IP)
			case e.Claims > 1:
				return fmt.Sprintf("%s, one of %d claims, see 'mesh-agent lookup %s'", e.Kind, e.Claims, a.IP)
			default:
				return e.Kind
			}
		}},
	}
}

type identityDescription struct {
	Identity *api.Identity `json:"identity"`
	// Others have the same number in other clusters.
	Others  []api.Identity `json:"others"`
	Cluster *api.Cluster   `json:"cluster"` // null when it is not a remote cluster
	Users   addressCount   `json:"users"`
	First   []api.IP       `json:"first"` // some of the users

	Why *api.Explanation `json:"why"`
}

func describeIdentity(ctx context.Context, g *gatherer, i *api.Identity) description {
	number := strconv.Itoa(int(i.ID))
	d := &identityDescription{Identity: i, Why: g.why(ctx, "identities", number)}
	others, _ := list[api.Identity](ctx, g, "identities", client.Query{Identity: number})
	d.Others = slices.DeleteFunc(others, func(o api.Identity) bool { return o.Cluster == i.Cluster })
	d.Cluster = g.cluster(ctx, i.Cluster)
	ips, cut := list[api.IP](ctx, g, "ips", client.Query{Identity: number, Limit: api.MaxLimit})
	d.Users, d.First = addressCount{len(ips), cut}, ips[:min(len(ips), explain.Few)]
	return d
}

func (d *identityDescription) page(p *printer.Page, now time.Time) {
	i := d.Identity
	p.Line("Identity %d of cluster %s", i.ID, i.Cluster)
	p.Blank()
	p.Fields(
		printer.F("Labels", printer.LabelLines(i.Labels)...),
		printer.F("Cluster", printer.OrText(clusterLine(d.Cluster), fmt.Sprintf("%s (ID %d)", i.Cluster, i.ClusterID))...),
		printer.F("Known as of", freshnessOf(d.Cluster, func(c *api.Cluster) *api.Freshness { return &c.Freshness.Identities })),
		printer.F("Used by", d.Users.String()),
	)
	if len(d.First) > 0 {
		p.Section("The first of them")
		printer.Rows(p, resource.IPTable(), d.First)
	}
	if len(d.Others) > 0 {
		p.Section("The same number in other clusters")
		printer.Rows(p, resource.IdentityTable(), d.Others)
	}
	explain.WriteWhy(p, d.Why, now)
}

// ipDescription is the winner of a prefix, with the result of a lookup of its first address.
type ipDescription struct {
	IP        *api.IP        `json:"ip"`
	Lookup    *api.Lookup    `json:"lookup"`
	Conflicts []api.Conflict `json:"conflicts"`
}

func describeIP(ctx context.Context, g *gatherer, ip *api.IP) description {
	d := &ipDescription{IP: ip}
	if address, ok := addressOf(ip.Prefix); ok {
		d.Lookup = g.lookup(ctx, address)
	} else {
		g.err = fmt.Errorf("the agent answers with the prefix %q, which is none", ip.Prefix)
	}
	d.Conflicts = g.conflicts(ctx, ip.Prefix)
	return d
}

func (d *ipDescription) page(p *printer.Page, now time.Time) {
	ip := d.IP
	if m := d.Lookup.Match; m != nil && m.Prefix == ip.Prefix {
		lookup.Write(p, d.Lookup, now)
	} else {
		p.Line("%s belongs to cluster %s", ip.Prefix, ip.Cluster)
		p.Blank()
		p.Fields(
			printer.F("Kind", ip.Kind),
			printer.F("Identity", strconv.Itoa(int(ip.Identity))),
			printer.F("Node", ip.HostIP),
			printer.F("Source", ip.Source),
			printer.F("Claims", strconv.Itoa(ip.Claims)),
		)
		p.Section("Claims of %s, its first address", d.Lookup.IP)
		printer.Rows(p, lookup.Candidates(), d.Lookup.Candidates)
		lookup.WriteUnconfirmed(p, d.Lookup)
		explain.WriteWhy(p, &d.Lookup.Why, now)
	}
	pageConflicts(p, d.Conflicts)
}

func addressOf(text string) (string, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().Addr().String(), true
	}
	a, err := netip.ParseAddr(text)
	return a.String(), err == nil
}

func freshnessOf(c *api.Cluster, of func(*api.Cluster) *api.Freshness) string {
	if c == nil {
		return "the cluster is no remote one: see 'mesh-agent status'"
	}
	return clustertext.KnownAsOf(of(c))
}
