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

// resolver answers questions from the view. Each answer is made from one snapshot.
type resolver struct {
	view   *view.View
	own    string // the own cluster's name
	asker  backends.Asker
	zones  []zone       // the longest name first
	ttl    uint32       // of answers, in seconds
	most   int          // backends in an answer
	seed   maphash.Seed // selects the backends of a service that has more than most; each agent has another one
	kept   *keptAnswers
	spaces keptNamespaces
	server netip.Addr // the address that the server listens on, set before the first question; invalid: all addresses of the node
}

// zone is a zone that the server answers for.
type zone struct {
	name     string // in lower case, with the final dot
	services bool   // it has the services of all clusters
	find     func(a *answer, labels []string)
}

// newZones returns the zones of services. With a mesh zone, it also returns this zone and the reverse zones of
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

// zoneOf returns the zone of a name in lower case; nil for a name outside all zones.
func (r *resolver) zoneOf(name string) *zone {
	for i := range r.zones {
		z := r.zones[i].name
		if at := len(name) - len(z); at >= 0 && name[at:] == z && (at == 0 || name[at-1] == '.') {
			return &r.zones[i]
		}
	}
	return nil
}

// answer is the result for a name: whether the name exists, and the records of the question.
type answer struct {
	*resolver
	txn  statedb.ReadTxn
	zone *zone
	name string // of the question, in its original case
	kind uint16 // the record type of the question

	exists  bool
	fixed   bool             // the answer does not depend on data of clusters
	service *services.Global // that the name belongs to
	// ownPartOnly reports whether the answer depends only on the own cluster's part of the service.
	ownPartOnly bool
	records     []dns.RR
	extra       []dns.RR // addresses of the targets of records
}

// resolve answers a question for a name in a zone.
func (r *resolver) resolve(txn statedb.ReadTxn, z *zone, name string, kind uint16) *answer {
	a := &answer{resolver: r, txn: txn, zone: z, name: name, kind: kind}
	left := strings.TrimSuffix(dns.CanonicalName(name), z.name)
	switch {
	case left == "":
		a.exists, a.fixed = true, true
		a.apex()
	case strings.Contains(left, `\`): // no name in our zones has such bytes
	default:
		z.find(a, strings.Split(strings.TrimSuffix(left, "."), "."))
	}
	return a
}

func (a *answer) header(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

// Times of a zone in seconds, the same as those of CoreDNS (mcs.md A).
const (
	refresh        = 7200
	retry          = 1800
	expire         = 86400
	mostNegative   = 300 // the longest time for which a negative answer may be cached
	versionTTL     = 28800
	serviceVersion = "1.0.0" // of the names below a zone of services (KEP-1645)
)

// soa returns the SOA record of a negative answer. Its serial is the revision of the services, which grows with each
// change.
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

// belowServices finds a name in a tree of services: those of one cluster or, if cluster is empty, of all clusters.
// base is the part of the name to the right of the labels.
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
	if cluster != "" && g == nil { // a service that is not shared has a name only in the tree of its cluster
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

// find returns the shared service with this name; nil for none. It also returns the addresses of the service, if the
// own cluster imports it and has given it addresses for the mesh.
func (r *resolver) find(txn statedb.ReadTxn, namespace, name string) (g *services.Global, addresses []netip.Addr) {
	g = r.view.Services.Find(txn, namespace, name, (*services.Global).Shared)
	if g != nil && g.Name != name && g.Local() != nil {
		return g, r.ofImport(txn, namespace, name, g.Local().Addresses)
	}
	return g, nil
}

// ofImport returns those addresses of a derived Service that its import has, too (mcs.md B, spec.ips). A cluster with
// both families gives the Service an address of each, even if the exporters have no backends of one family.
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
