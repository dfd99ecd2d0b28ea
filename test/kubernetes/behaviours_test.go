package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// offer is what a user applies in a cluster to have a service called web in the mesh. spec has more fields of the
// Service.
type offer struct {
	spec     string // of the Service, in addition to its ports
	ports    string // of the Service; empty for http and admin
	meta     string // of the Service
	export   string // the spec of the ServiceExport
	backends string // addresses; empty for one, which depends on the cluster
	hosts    bool   // the backends have the host names web-0, web-1
	withheld bool   // the ServiceExport is not applied
}

func (o offer) texts(namespace, cluster string) []string {
	number := map[string]int{"east": 1, "west": 2}[cluster]
	ports, backends := o.ports, o.backends
	if ports == "" {
		ports = "{name: http, port: 80, targetPort: 8080, protocol: TCP}, {name: admin, port: 9000, targetPort: 9090, protocol: TCP}"
	}
	if backends == "" {
		backends = fmt.Sprintf("10.%d.0.1", number)
	}
	var endpoints, sliced []string
	for i, address := range strings.Fields(backends) {
		host := ""
		if o.hosts {
			host = fmt.Sprintf(", hostname: web-%d", i)
		}
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s], conditions: {ready: true}%s}", address, host))
	}
	for _, p := range strings.Split(ports, "}, ") {
		p = strings.TrimSuffix(p, "}")
		name, rest, _ := strings.Cut(strings.TrimPrefix(p, "{name: "), ",")
		_, target, _ := strings.Cut(rest, "targetPort: ")
		target, protocol, _ := strings.Cut(target, ", protocol: ")
		sliced = append(sliced, fmt.Sprintf("{name: %s, port: %s, protocol: %s}", name, target, protocol))
	}
	texts := []string{fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {namespace: %s, name: web%s}
spec: {selector: {app: web}, ports: [%s]%s}
`, namespace, o.meta, ports, o.spec), fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: %s, name: web-1, labels: {kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}
addressType: IPv4
endpoints: [%s]
ports: [%s]
`, namespace, strings.Join(endpoints, ", "), strings.Join(sliced, ", "))}
	if !o.withheld {
		texts = append(texts, o.exported(namespace))
	}
	return texts
}

func (o offer) exported(namespace string) string {
	return fmt.Sprintf("\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {namespace: %s, name: web}\nspec: {%s}\n", namespace, o.export)
}

// The results in both clusters, in the format of state.
const (
	isValid  = "export Conflict=False/NoConflicts Ready=True/Ready Valid=True/Valid"
	setIP    = "import ClusterSetIP admin:9000/TCP http:80/TCP"
	headless = "import Headless admin:9000/TCP http:80/TCP"
	isReady  = ", slices Present Ready=True/Ready"
)

// connects are the lines of the two ports with these backends.
func connects(backends ...string) (lines []string) {
	for _, p := range [][2]string{{"80", "8080"}, {"9000", "9090"}} {
		line := "connects " + p[0] + " to"
		for _, b := range backends {
			line += " " + b + ":" + p[1]
		}
		lines = append(lines, line)
	}
	return lines
}

func conflict(reason string) string {
	return "export Conflict=True/" + reason + " Ready=True/Ready Valid=True/Valid"
}

// behaviour is the result of the offers of one or both clusters. East's offer is the older one.
type behaviour struct {
	east, west         *offer
	wantEast, wantWest []string
}

// with returns the lines, with more lines after them.
func with(lines []string, more ...string) []string {
	return append(append([]string(nil), lines...), more...)
}

// behaviours are what users of the MCS API can rely on (KEP-1645, and the checks of its public conformance suite).
func behaviours() map[string]behaviour {
	plain := &offer{}
	one, two := connects("10.1.0.1"), connects("10.1.0.1", "10.2.0.1")
	both := func(lines []string, exports string) behaviour {
		return behaviour{wantEast: with(lines, exports), wantWest: with(lines, exports)}
	}
	pair := func(east, west offer, exports string, lines ...string) behaviour {
		b := both(lines, exports)
		b.east, b.west = &east, &west
		return b
	}
	single := func(east offer, exports string, lines ...string) behaviour {
		return behaviour{east: &east, wantEast: with(lines, exports), wantWest: lines}
	}
	spec := func(text string) offer { return offer{spec: text} }
	exported := func(text string) offer { return offer{export: text} }
	return map[string]behaviour{
		"nothing is exported":                  {east: &offer{withheld: true}, west: &offer{withheld: true}},
		"a Service with an address of its own": single(*plain, isValid, with(one, setIP+" with an address of east"+isReady)...),
		"a headless Service":                   single(spec(", clusterIP: None"), isValid, with(one, headless+" of east"+isReady)...),
		"a Service of the type NodePort":       single(spec(", type: NodePort"), isValid, with(one, setIP+" with an address of east"+isReady)...),
		"a Service of the type ExternalName": {
			east:     &offer{spec: ", type: ExternalName, externalName: example.com"},
			wantEast: []string{"export Ready=False/Pending Valid=False/InvalidServiceType"},
		},
		"two clusters export it":                   pair(*plain, *plain, isValid, with(two, setIP+" with an address of east west"+isReady)...),
		"two clusters export it without addresses": pair(spec(", clusterIP: None"), spec(", clusterIP: None"), isValid, with(two, headless+" of east west"+isReady)...),
		"one exports it, the other has it": {
			east: plain, west: &offer{withheld: true},
			wantEast: with(one, setIP+" with an address of east"+isReady, isValid), wantWest: with(one, setIP+" with an address of east"+isReady),
		},
		"clients stick to a backend": single(spec(", sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 77}}"), isValid,
			with(one, "import ClusterSetIP admin:9000/TCP http:80/TCP sticky 77 with an address of east"+isReady, "sticks for 77")...),
		"traffic stays in the cluster": single(spec(", internalTrafficPolicy: Local, trafficDistribution: PreferClose"), isValid,
			with(one, setIP+" Local PreferClose with an address of east"+isReady)...),
		"what the export says goes along, what the Service says does not": {
			east:     &offer{meta: ", labels: {of-the-service: l}, annotations: {of-the-service: a}", export: "exportedLabels: {exported: l}, exportedAnnotations: {exported: a}"},
			wantEast: with(one, setIP+" exported=l exported=a with an address of east"+isReady, isValid),
			// Flags decide which labels and annotations remote exports may set.
			wantWest: with(one, setIP+" with an address of east"+isReady),
		},
		"the ports of both": pair(
			offer{ports: "{name: http, port: 80, targetPort: 8080, protocol: TCP}"}, offer{ports: "{name: http, port: 80, targetPort: 8080, protocol: TCP}, {name: sip, port: 142, targetPort: 1420, protocol: SCTP}"},
			conflict("PortConflict"), "import ClusterSetIP http:80/TCP sip:142/SCTP with an address of east west"+isReady,
			"connects 80 to 10.1.0.1:8080 10.2.0.1:8080", "connects 142 to 10.2.0.1:1420"),
		"a port of each with the same number": pair(
			offer{ports: "{name: http, port: 80, targetPort: 8080, protocol: TCP}, {name: dns, port: 53, targetPort: 5300, protocol: TCP}"},
			offer{ports: "{name: http, port: 80, targetPort: 8080, protocol: TCP}, {name: dns, port: 53, targetPort: 5300, protocol: TCP}, {name: dns-udp, port: 53, targetPort: 5300, protocol: UDP}"},
			conflict("PortConflict"), "import ClusterSetIP dns-udp:53/UDP dns:53/TCP http:80/TCP with an address of east west"+isReady,
			"connects 80 to 10.1.0.1:8080 10.2.0.1:8080", "connects 53 to 10.1.0.1:5300 10.2.0.1:5300", "connects 53 to 10.2.0.1:5300"),
		"a service exported by the other cluster alone": {
			west:     plain,
			wantEast: with(connects("10.2.0.1"), setIP+" with an address of west"+isReady), wantWest: with(connects("10.2.0.1"), setIP+" with an address of west"+isReady, isValid),
		},
		"a service that wants no slices": {
			east:     &offer{export: `exportedAnnotations: {service.cilium.io/global-sync-endpoint-slices: "false"}`},
			wantEast: with(one, setIP+" with an address of east, slices Absent Ready=True/Ready", isValid),
			wantWest: with(one, setIP+" with an address of east"+isReady),
		}, // the annotation of a remote export is not allowed here
		"other backends of each": pair(offer{backends: "10.1.0.1 10.1.0.2"}, offer{backends: "10.2.0.1 10.2.0.2 10.2.0.3"}, isValid,
			with(connects("10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2", "10.2.0.3"), setIP+" with an address of east west"+isReady)...),
		"they disagree about stickiness": {
			east: plain, west: new(spec(", sessionAffinity: ClientIP")),
			wantEast: with(two, setIP+" with an address of east west"+isReady, conflict("SessionAffinityConflict")),
			wantWest: with(two, setIP+" sticky 10800 with an address of east west"+isReady, "sticks for 10800", conflict("SessionAffinityConflict")),
		},
		"they disagree about how long": {
			east: new(spec(", sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}")), west: new(spec(", sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 6}}")),
			wantEast: with(two, setIP+" sticky 5 with an address of east west"+isReady, "sticks for 5", conflict("SessionAffinityConfigConflict")),
			wantWest: with(two, setIP+" sticky 6 with an address of east west"+isReady, "sticks for 6", conflict("SessionAffinityConfigConflict")),
		},
		"they disagree about internal traffic": {
			east: plain, west: new(spec(", internalTrafficPolicy: Local")),
			wantEast: with(two, setIP+" with an address of east west"+isReady, conflict("InternalTrafficPolicyConflict")),
			wantWest: with(two, setIP+" Local with an address of east west"+isReady, conflict("InternalTrafficPolicyConflict")),
		},
		"they disagree about the distribution": {
			east: plain, west: new(spec(", trafficDistribution: PreferClose")),
			wantEast: with(two, setIP+" with an address of east west"+isReady, conflict("TrafficDistributionConflict")),
			wantWest: with(two, setIP+" PreferClose with an address of east west"+isReady, conflict("TrafficDistributionConflict")),
		},
		"they disagree about labels": {
			east: new(exported("exportedLabels: {exported: a}")), west: new(exported("exportedLabels: {other: b}")),
			wantEast: with(two, setIP+" exported=a with an address of east west"+isReady, conflict("LabelsConflict")),
			wantWest: with(two, setIP+" other=b with an address of east west"+isReady, conflict("LabelsConflict")),
		},
		"they disagree about annotations": {
			east: new(exported("exportedAnnotations: {exported: a}")), west: new(exported("exportedAnnotations: {other: b}")),
			wantEast: with(two, setIP+" exported=a with an address of east west"+isReady, conflict("AnnotationsConflict")),
			wantWest: with(two, setIP+" other=b with an address of east west"+isReady, conflict("AnnotationsConflict")),
		},
		// The names of ports select backends (docs/mcs.md, When clusters disagree).
		"they disagree about the number of a port": {
			east: new(offer{ports: "{name: http, port: 80, targetPort: 8080, protocol: TCP}"}), west: new(offer{ports: "{name: http, port: 81, targetPort: 8081, protocol: TCP}"}),
			wantEast: []string{"import ClusterSetIP http:80/TCP with an address of east west" + isReady, conflict("PortConflict"), "connects 80 to 10.1.0.1:8080 10.2.0.1:8081"},
			wantWest: []string{"import ClusterSetIP http:81/TCP with an address of east west" + isReady, conflict("PortConflict"), "connects 81 to 10.1.0.1:8080 10.2.0.1:8081"},
		},
		"they disagree about addresses": {
			east: plain, west: new(spec(", clusterIP: None")),
			wantEast: with(two, setIP+" with an address of east west"+isReady, conflict("TypeConflict")),
			wantWest: with(two, headless+" of east west"+isReady, conflict("TypeConflict")),
		},
	}
}

// TestWhatUsersOfTheMCSAPIRelyOn: each behaviour in a namespace of its own, on two clusters that import from each
// other; then the state while only one of them exports, and after that.
func TestWhatUsersOfTheMCSAPIRelyOn(t *testing.T) {
	t.Parallel()
	both := newTwoClusters(t)
	// The namespaces are created here, and all behaviours end before the clusters do.
	t.Run("behaviours", func(t *testing.T) {
		for name, b := range behaviours() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				both.behave(t, "n"+fmt.Sprintf("%08x", hashOf(name)), b)
			})
		}
		t.Run("exported by one after the other", func(t *testing.T) { t.Parallel(); both.comeAndGo(t) })
		t.Run("an export before its Service", func(t *testing.T) { t.Parallel(); both.exportBeforeService(t) })
		t.Run("a namespace that one cluster lacks", func(t *testing.T) { t.Parallel(); both.namespaceLater(t) })
		t.Run("a namespace that is deleted", func(t *testing.T) { t.Parallel(); both.namespaceGoes(t) })
		t.Run("names", func(t *testing.T) { t.Parallel(); both.names(t) })
	})
}

func hashOf(name string) (h uint32) {
	for _, b := range []byte(name) {
		h = h*16777619 ^ uint32(b)
	}
	return h
}

// behave applies the offers, and deletes the exports again: no object may remain.
func (two twoClusters) behave(t *testing.T, namespaced string, b behaviour) {
	t.Helper()
	for _, c := range two.both() {
		c.Apply(t, namespace(namespaced))
	}
	offers := map[*importing]*offer{two.east: b.east, two.west: b.west}
	for _, c := range two.both() {
		if o := offers[c]; o != nil {
			c.Apply(t, o.texts(namespaced, c.cluster)...)
		}
	}
	two.await(t, "what is exported", namespaced, b.wantEast, b.wantWest)
	for c, o := range offers {
		if o != nil && !o.withheld {
			c.Delete(t, o.exported(namespaced))
		}
	}
	two.await(t, "nothing", namespaced, nil, nil)
}

// comeAndGo: an import exists as long as one cluster exports the service, and keeps its address.
func (two twoClusters) comeAndGo(t *testing.T) {
	const ns = "come-and-go"
	o := offer{}
	for _, c := range two.both() {
		c.Apply(t, namespace(ns))
	}
	line := func(clusters string, more ...string) []string {
		return with(more, setIP+" with an address of "+clusters+isReady)
	}
	two.east.Apply(t, o.texts(ns, "east")...)
	first := connects("10.1.0.1")
	two.await(t, "one exports", ns, line("east", with(first, isValid)...), line("east", first...))
	address := two.east.addressOf(t, ns)
	two.west.Apply(t, o.texts(ns, "west")...)
	both := with(connects("10.1.0.1", "10.2.0.1"), isValid)
	two.await(t, "both export", ns, line("east west", both...), line("east west", both...))
	two.east.Delete(t, o.exported(ns))
	second := connects("10.2.0.1")
	two.await(t, "the other one exports", ns, line("west", second...), line("west", with(second, isValid)...))
	if now := two.east.addressOf(t, ns); now != address {
		t.Errorf("the address was %s, and is %s", address, now)
	}
	two.west.Delete(t, o.exported(ns))
	two.await(t, "nobody exports", ns, nil, nil)
}

// addressOf is the address of the import.
func (c *importing) addressOf(t *testing.T, ns string) string {
	t.Helper()
	o, err := c.Client(t).Resource(mcsResource("serviceimports")).Namespace(ns).Get(t.Context(), "web", metav1.GetOptions{})
	waittest.Must(t, err)
	ips, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "ips")
	return strings.Join(ips, " ")
}

// exportBeforeService: an export without a Service is not valid, and becomes valid when there is one.
func (two twoClusters) exportBeforeService(t *testing.T) {
	const ns = "export-first"
	o := offer{}
	for _, c := range two.both() {
		c.Apply(t, namespace(ns))
	}
	two.east.Apply(t, o.exported(ns))
	two.await(t, "it is not valid", ns, []string{"export Ready=False/Pending Valid=False/NoService"}, nil)
	two.east.Apply(t, o.texts(ns, "east")...)
	lines := with(connects("10.1.0.1"), setIP+" with an address of east"+isReady)
	two.await(t, "it is valid", ns, with(lines, isValid), lines)
}

// namespaceLater: a cluster imports a service when it has the namespace, which may be created later.
func (two twoClusters) namespaceLater(t *testing.T) {
	const ns = "one-lacks"
	two.east.Apply(t, namespace(ns))
	two.east.Apply(t, offer{}.texts(ns, "east")...)
	lines := with(connects("10.1.0.1"), setIP+" with an address of east"+isReady)
	two.await(t, "no import without the namespace", ns, with(lines, isValid), nil)
	two.west.Apply(t, namespace(ns))
	two.await(t, "an import", ns, with(lines, isValid), lines)
}

// namespaceGoes: an export in a namespace that is being deleted is not reported as wrong, and a write that is no longer
// possible is no failure. No controller completes the deletion here.
func (two twoClusters) namespaceGoes(t *testing.T) {
	const ns = "goes"
	for _, c := range two.both() {
		c.Apply(t, namespace(ns))
	}
	two.east.Apply(t, offer{}.texts(ns, "east")...)
	lines := with(connects("10.1.0.1"), setIP+" with an address of east"+isReady)
	two.await(t, "an import", ns, with(lines, isValid), lines)
	two.east.Delete(t, namespace(ns))
	two.await(t, "what was written goes, the export is as it was", ns, []string{isValid}, with(connects(), setIP+" with an address of east"+isReady))
	two.east.Delete(t, offer{}.exported(ns))
	two.await(t, "nothing", ns, nil, nil)
}

// names checks the names of both zones in both clusters, as answered by the CoreDNS of docs/mcs.md.
func (two twoClusters) names(t *testing.T) {
	if two.east.dns == "" {
		t.Skip("no CoreDNS: run `make kubernetes`, which builds it, or set COREDNS to its path")
	}
	const ns, set = "names", "web.names.svc.clusterset.local."
	for _, c := range two.both() {
		c.Apply(t, namespace(ns), namespace(ns+"-headless"))
	}
	two.east.Apply(t, offer{}.texts(ns, "east")...)
	two.east.Apply(t, offer{spec: ", clusterIP: None", backends: "10.1.0.1 10.1.0.2", hosts: true}.texts(ns+"-headless", "east")...)
	lines := with(connects("10.1.0.1"), setIP+" with an address of east"+isReady)
	two.await(t, "an import", ns, with(lines, isValid), lines)
	const db = "web.names-headless.svc.clusterset.local."
	for _, c := range two.both() {
		ip := c.addressOf(t, ns)
		c.answers(t, set, "A", "NOERROR; "+set+" A "+ip)
		c.answers(t, set, "SRV", fmt.Sprintf("NOERROR; +%[1]s A %[2]s; %[1]s SRV 0 50 80 %[1]s; %[1]s SRV 0 50 9000 %[1]s", set, ip))
		c.answers(t, "_http._tcp."+set, "SRV", fmt.Sprintf("NOERROR; +%[1]s A %[2]s; _http._tcp.%[1]s SRV 0 100 80 %[1]s", set, ip))
		c.answers(t, db, "A", "NOERROR; "+db+" A 10.1.0.1; "+db+" A 10.1.0.2")
		for i, host := range []string{"web-0.east.", "web-1.east."} {
			c.answers(t, host+db, "A", fmt.Sprintf("NOERROR; %s A 10.1.0.%d", host+db, i+1))
		}
		c.answers(t, "_http._tcp."+db, "SRV", strings.ReplaceAll("NOERROR; +web-0.east.DB A 10.1.0.1; +web-1.east.DB A 10.1.0.2; "+
			"_http._tcp.DB SRV 0 50 8080 web-0.east.DB; _http._tcp.DB SRV 0 50 8080 web-1.east.DB", "DB", db))
	}
	own, err := two.east.Client(t).Resource(servicesResource()).Namespace(ns).Get(t.Context(), "web", metav1.GetOptions{})
	waittest.Must(t, err)
	ip, _, _ := unstructured.NestedString(own.Object, "spec", "clusterIP")
	const name = "web.names.svc.cluster.local."
	two.east.answers(t, name, "A", "NOERROR; "+name+" A "+ip)
	two.west.answers(t, name, "A", "NXDOMAIN; -cluster.local. SOA")
}

// answers waits until CoreDNS gives this answer.
func (c *importing) answers(t *testing.T, name, kind, want string) {
	t.Helper()
	var got string
	waittest.Until(t, kind+" of "+name+" in "+c.cluster, func() bool { got = exchange(t, c.dns, name, kind); return got == want }, func() string { return got })
}
