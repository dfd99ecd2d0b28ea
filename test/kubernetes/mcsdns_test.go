package kubernetes

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// ownDB has one backend with a host name, one without, and one that is not ready.
const ownDB = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: default, name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints:
- {addresses: [10.1.0.1], hostname: db-0}
- {addresses: [10.1.0.2], conditions: {ready: true}}
- {addresses: [10.1.0.3], hostname: db-1, conditions: {ready: false}}
ports: [{name: http, port: 80, protocol: TCP}]
`

// exportForDNS exports services of both types from the own cluster and from west: web with an address, db without, idle
// without backends, and six, whose addresses are only of a family that the own cluster does not have. It returns the
// address of web.
func (i imported) exportForDNS(t *testing.T) (ip string) {
	t.Helper()
	headless := func(e *wire.ServiceExport) { e.Type = wire.ServiceExportHeadless }
	derived := func(name string) string { return wire.DerivedServiceName("default", name) }
	i.export(t, "web", 2000)
	i.share(t, derived("web"), "10.2.0.9")
	i.export(t, "db", 2000, headless)
	i.shareHosts(t, derived("db"), "db", "10.2.0.1", "10.2.0.2")
	i.export(t, "idle", 2000, headless)
	i.export(t, "six", 2000, func(e *wire.ServiceExport) { e.IPFamilies = []string{"IPv6"} })
	i.shareHosts(t, derived("six"), "six", "fd00::2")
	i.serve(t, "first") // it defines the kinds
	i.Apply(t, node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"), plainService("web", ""), slice("web-1", "web", "10.1.0.9"), exportOf("web", ""),
		plainService("db", ", clusterIP: None"), ownDB, exportOf("db", ""))

	imports := i.Client(t).Resource(schema.GroupVersionResource{Group: mcs.Group, Version: mcs.Version, Resource: "serviceimports"}).Namespace("default")
	i.until(t, "web has an address", func() bool {
		o, err := imports.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return false // it may not exist yet
		}
		ips, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "ips")
		ip = strings.Join(ips, " ")
		return ip != ""
	})
	return ip
}

// TestCoreDNSAnswersFromWhatIsImported: CoreDNS answers from imports and slices as the specification requires, and as
// an agent does (mcs.md A, behaviours 2 to 10), until the imports are gone.
func TestCoreDNSAnswersFromWhatIsImported(t *testing.T) {
	t.Parallel()
	program := os.Getenv("COREDNS")
	if program == "" {
		t.Skip("no CoreDNS: run `make kubernetes`, which builds it, or set COREDNS to its path")
	}
	i := newImported(t)
	ip := i.exportForDNS(t)
	r := resolved{i.coreDNS(t, program), i.agentDNS(t)}
	const none, nothing = "NOERROR; -clusterset.local. SOA", "NXDOMAIN; -clusterset.local. SOA"
	r.await(t, "answers with addresses of the mesh", []asked{
		{name: "web", kind: "A", answer: "NOERROR; web A " + ip},
		{name: "WEB", kind: "A", answer: "NOERROR; WEB A " + ip},
		{name: "web", kind: "AAAA", answer: none},
		{name: "web", kind: "TXT", answer: none},
		{name: "web", kind: "SRV", answer: "NOERROR; +web A " + ip + "; web SRV 0 50 80 web; web SRV 0 50 9000 web"},
		{name: "_http._tcp.web", kind: "SRV", answer: "NOERROR; +web A " + ip + "; _http._tcp.web SRV 0 100 80 web"},
		{name: "_admin._tcp.web", kind: "SRV", answer: "NOERROR; +web A " + ip + "; _admin._tcp.web SRV 0 100 9000 web"},
		{name: "_http._udp.web", kind: "SRV", answer: nothing},
		{name: "_none._tcp.web", kind: "SRV", answer: nothing},
		{name: "nobody", kind: "A", answer: nothing},
	}...)
	r.await(t, "answers of headless services", []asked{
		{name: "db", kind: "A", answer: "NOERROR; db A 10.1.0.1; db A 10.1.0.2; db A 10.2.0.1; db A 10.2.0.2"},
		{name: "db", kind: "AAAA", answer: none},
		{name: "db-0.east.db", kind: "A", answer: "NOERROR; db-0.east.db A 10.1.0.1"},
		{name: "db-0.west.db", kind: "A", answer: "NOERROR; db-0.west.db A 10.2.0.1"},
		{name: "db-1.west.db", kind: "A", answer: "NOERROR; db-1.west.db A 10.2.0.2"},
		{name: "db-1.east.db", kind: "A", answer: nothing}, // not ready
		{name: "db-0.north.db", kind: "A", answer: nothing},
		{name: "db-0.db", kind: "A", answer: nothing},
		{name: "10-1-0-2.east.db", kind: "A", answer: "NOERROR; 10-1-0-2.east.db A 10.1.0.2"},
		{name: "_http._tcp.db", kind: "SRV", answer: "NOERROR; +10-1-0-2.east.db A 10.1.0.2; +db-0.east.db A 10.1.0.1; +db-0.west.db A 10.2.0.1; +db-1.west.db A 10.2.0.2; " +
			"_http._tcp.db SRV 0 25 80 10-1-0-2.east.db; _http._tcp.db SRV 0 25 80 db-0.east.db; _http._tcp.db SRV 0 25 8080 db-0.west.db; _http._tcp.db SRV 0 25 8080 db-1.west.db"},
		{name: "idle", kind: "A", answer: nothing},
		{name: "_http._tcp.idle", kind: "SRV", answer: nothing},
	}...)
	r.await(t, "answers that differ on purpose, as docs/mcs.md says", []asked{
		// A service without an address is a service like any other, with backends that can be connected to. The
		// specification does not mention this case.
		{name: "six", kind: "AAAA", answer: none, agent: "NOERROR; six AAAA fd00::2"},
		{name: "six", kind: "A", answer: none},
		// The specification has host names for headless services only (2.4).
		{name: "10-1-0-9.east.web", kind: "A", answer: "NOERROR; 10-1-0-9.east.web A 10.1.0.9", agent: nothing},
		// Reserved names have no records (2.3.4, 2.4.4), but names below them exist (RFC 8020).
		{name: "west.db", kind: "A", answer: nothing, agent: none},
		{name: "west.web", kind: "A", answer: nothing, agent: none},
	}...)

	// Services that only one cluster still exports, and then no cluster.
	i.Delete(t, exportOf("db", ""), exportOf("web", ""))
	r.await(t, "answers of the other cluster alone", []asked{
		{name: "web", kind: "A", answer: "NOERROR; web A " + ip},
		{name: "db", kind: "A", answer: "NOERROR; db A 10.2.0.1; db A 10.2.0.2"},
		{name: "db-0.east.db", kind: "A", answer: nothing},
		{name: "_http._tcp.db", kind: "SRV", answer: "NOERROR; +db-0.west.db A 10.2.0.1; +db-1.west.db A 10.2.0.2; _http._tcp.db SRV 0 50 8080 db-0.west.db; _http._tcp.db SRV 0 50 8080 db-1.west.db"},
	}...)
	for _, name := range []string{"web", "db"} {
		_, err := i.west.Client(t).Delete(t.Context(), wire.ServiceExports.Prefix("west", false)+"default/"+name)
		waittest.Must(t, err)
	}
	var gone []asked
	for _, name := range []string{"web", "_http._tcp.web", "db", "_http._tcp.db", "db-0.west.db"} {
		for _, kind := range []string{"A", "SRV"} {
			gone = append(gone, asked{name: name, kind: kind, answer: nothing})
		}
	}
	r.await(t, "no answers without imports", gone...)
}
