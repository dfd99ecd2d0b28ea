package dnsserver

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/statedb"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// resolver answers questions from the view. Each answer is of one moment.
type resolver struct {
	view   *view.View
	own    string // the own cluster's name
	asker  backends.Asker
	zones  []zone       // the longest first
	ttl    uint32       // of answers, seconds
	most   int          // backends in an answer
	seed   maphash.Seed // it decides which of them, of a service that has more: agents differ in it
	kept   *keptAnswers
	spaces keptNamespaces
	server netip.Addr // where questions come to, set before the first one; invalid: any address of the node
}

// zone is one that is answered for.
type zone struct {
	name     string // in lower case, with its final dot
	services bool   // of all clusters
	find     func(a *answer, labels []string)
}

// newZones returns the zones of services, and with a zone of its own for the mesh that and those of
// addresses.
func newZones(ofServices []string, mesh string) []zone {
	var all []zone
	for _, name := range ofServices {
		all = append(all, zone{dns.CanonicalName(name), true, (*answer).inServices})
	}
	if mesh != "" {
		name := dns.CanonicalName(mesh)
		pointers := func(family reverse) func(*answer, []string) {
			return func(a *answer, labels []string) { a.pointer(labels, family, name) }
		}
		all = append(all, zone{name, false, (*answer).inMesh}, zone{"in-addr.arpa.", false, pointers(reverse{4, 10, 8})}, zone{"ip6.arpa.", false, pointers(reverse{32, 16, 4})})
	}
	slices.SortStableFunc(all, func(a, b zone) int { return len(b.name) - len(a.name) })
	return all
}

// zoneOf is the zone of a name in lower case; nil for one that nobody asks us for.
func (r *resolver) zoneOf(name string) *zone {
	for i := range r.zones {
		z := r.zones[i].name
		if at := len(name) - len(z); at >= 0 && name[at:] == z && (at == 0 || name[at-1] == '.') {
			return &r.zones[i]
		}
	}
	return nil
}

// answer is what is known of a name: whether it exists, and the records that were asked for.
type answer struct {
	*resolver
	txn  statedb.ReadTxn
	zone *zone
	name string // that was asked for, as it was written
	kind uint16 // of the records that are asked for

	exists  bool
	fixed   bool             // whether it is so whatever the clusters have
	service *services.Global // that the name belongs to
	// ownPartOnly reports whether the answer depends on the own cluster's part of the service alone.
	ownPartOnly bool
	records     []dns.RR
	extra       []dns.RR // addresses of the targets
}

// resolve answers a question of a zone.
func (r *resolver) resolve(txn statedb.ReadTxn, z *zone, name string, kind uint16) *answer {
	a := &answer{resolver: r, txn: txn, zone: z, name: name, kind: kind}
	left := strings.TrimSuffix(dns.CanonicalName(name), z.name)
	switch {
	case left == "":
		a.exists, a.fixed = true, true
		a.apex()
	case strings.Contains(left, `\`): // no name of ours has such bytes
	default:
		z.find(a, strings.Split(strings.TrimSuffix(left, "."), "."))
	}
	return a
}

func (a *answer) header(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

// Times of a zone, seconds, as those of CoreDNS (mcs.md A).
const (
	refresh        = 7200
	retry          = 1800
	expire         = 86400
	mostNegative   = 300 // how long a negative answer is kept at the most
	versionTTL     = 28800
	serviceVersion = "1.0.0" // of the names below a zone of services (KEP-1645)
)

// soa is the record that a negative answer has. Its serial is the revision of the services, which
// grows with each change.
func (a *answer) soa(ttl uint32) dns.RR {
	return &dns.SOA{
		Hdr: a.header(a.zone.name, dns.TypeSOA, ttl), Ns: a.nameServer(), Mbox: "hostmaster." + a.zone.name,
		Serial:  uint32(a.view.Services.Global().Revision(a.txn)), //nolint:gosec // it may wrap
		Refresh: refresh, Retry: retry, Expire: expire, Minttl: a.ttl,
	}
}

// inServices finds a name below a zone of services (mcs.md A).
func (a *answer) inServices(labels []string) {
	n := len(labels)
	switch last := labels[n-1]; {
	case last == "dns-version" && n == 1:
		a.exists, a.fixed = true, true
		if a.kind == dns.TypeTXT {
			a.records = append(a.records, &dns.TXT{Hdr: a.header(a.name, dns.TypeTXT, versionTTL), Txt: []string{serviceVersion}})
		}
	case last == "dns":
		a.exists, a.fixed = n == 1 || n == 2 && labels[0] == "ns", true
		if n == 2 && a.exists {
			a.all(a.serverAddresses())
		}
	case last == "svc":
		a.belowServices(labels[:n-1], "", "svc."+a.zone.name)
	}
}

// belowServices finds a name in a tree of services, those of one cluster or, if it is empty, of all.
// What is to the right of the labels is base.
func (a *answer) belowServices(labels []string, cluster, base string) {
	n := len(labels)
	if n == 0 {
		a.exists, a.fixed = true, true
		return
	}
	namespace := labels[n-1]
	if n == 1 {
		a.exists = a.hasNamespace(namespace, cluster)
		return
	}
	name := labels[n-2]
	g, addresses := a.find(a.txn, namespace, name)
	if cluster != "" && g == nil { // what is not shared has a name in its cluster's tree alone
		g, _, _ = a.view.Services.Global().Get(a.txn, services.GlobalByName(namespace, name))
	}
	if g == nil {
		return
	}
	a.service = g
	s := serviceName{answer: a, base: name + "." + namespace + "." + base, cluster: cluster}
	if cluster == "" && len(addresses) > 0 {
		s.findAddressed(labels[:n-2], addresses)
		return
	}
	s.find(labels[:n-2])
}

// find finds the shared service of a name; nil for none. It has addresses when the own cluster imports it and has given
// it some for the mesh.
func (r *resolver) find(txn statedb.ReadTxn, namespace, name string) (g *services.Global, addresses []netip.Addr) {
	g = r.view.Services.Find(txn, namespace, name, (*services.Global).Shared)
	if g != nil && g.Name != name && g.Local() != nil {
		return g, r.ofImport(txn, namespace, name, g.Local().Addresses)
	}
	return g, nil
}

// ofImport are those addresses of a derived Service that its import has, too (mcs.md B, spec.ips): a cluster
// with both families gives it one of each, also where the exporters have no backends of the other one.
func (r *resolver) ofImport(txn statedb.ReadTxn, namespace, name string, addresses []netip.Addr) (all []netip.Addr) {
	if len(addresses) < 2 {
		return addresses
	}
	families := mcs.Families(statedb.Collect(r.view.Services.ServiceExports().List(txn, services.ExportsByName(namespace, name))), mcs.Precedence{Own: r.own})
	for _, ip := range addresses {
		family := corev1.IPv6Protocol
		if ip.Is4() {
			family = corev1.IPv4Protocol
		}
		if len(families) == 0 || slices.Contains(families, family) {
			all = append(all, ip)
		}
	}
	return all
}
