package publish

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestWhichServicesAreExported(t *testing.T) {
	t.Parallel()
	const unset = "-"
	for name, c := range map[string]struct {
		annotations   string
		namespace     string // value of its annotation; unset: it has none, "": there is no namespace
		defaultGlobal bool
		want          bool
	}{
		"no annotation":                             {"{}", unset, true, false},
		"global":                                    {"{service.cilium.io/global: 'true'}", unset, true, true},
		"global under its older name":               {"{io.cilium/global-service: 'TRUE'}", unset, true, true},
		"something like true":                       {"{service.cilium.io/global: '1'}", unset, true, false},
		"global and not shared":                     {"{service.cilium.io/global: 'true', service.cilium.io/shared: 'false'}", unset, true, false},
		"shared and not global":                     {"{service.cilium.io/shared: 'true'}", unset, true, false},
		"with an unknown affinity":                  {"{service.cilium.io/global: 'true', service.cilium.io/affinity: x}", unset, true, true},
		"nothing is known of the namespace":         {"{service.cilium.io/global: 'true'}", "", true, true},
		"nor are namespaces global":                 {"{service.cilium.io/global: 'true'}", "", false, false},
		"namespaces are not global":                 {"{service.cilium.io/global: 'true'}", unset, false, false},
		"the namespace says that it is":             {"{service.cilium.io/global: 'true'}", "True", false, true},
		"the namespace says that it is not":         {"{service.cilium.io/global: 'true'}", "false", true, false},
		"the namespace says anything else":          {"{service.cilium.io/global: 'true'}", "yes", true, false},
		"a global namespace makes no global things": {"{}", "true", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := object[corev1.Service](t, "metadata: {annotations: "+c.annotations+"}")
			var namespace *corev1.Namespace
			switch c.namespace {
			case "":
			case unset:
				namespace = new(corev1.Namespace)
			default:
				namespace = object[corev1.Namespace](t, "metadata: {annotations: {clustermesh.cilium.io/global: '"+c.namespace+"'}}")
			}
			if got := Exported(svc, namespace, c.defaultGlobal); got != c.want {
				t.Errorf("exported: %t", got)
			}
		})
	}
}

// text is an address map of a service as "address name/protocol/port ...".
func text(m map[string]wire.Ports) (out []string) {
	for _, ip := range slices.Sorted(maps.Keys(m)) {
		line := ip
		for _, name := range slices.Sorted(maps.Keys(m[ip])) {
			line += " " + name + "/" + m[ip][name].Protocol
		}
		out = append(out, line)
	}
	return out
}

func TestTheAddressesOfAService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service string
		want    []string
	}{
		"one":                                                {"spec: {clusterIP: 10.0.0.1, ports: [{name: a, port: 1}]}", []string{"10.0.0.1 a/TCP"}},
		"all of them":                                        {"spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 'FD00::1'], ports: [{port: 1}]}", []string{"10.0.0.1 /TCP", "fd00::1 /TCP"}},
		"none, for it is headless":                           {"spec: {clusterIP: none, ports: [{port: 1}]}", nil},
		"none, for it is labelled as headless":               {"{metadata: {labels: {service.kubernetes.io/headless: ''}}, spec: {clusterIP: 10.0.0.1}}", nil},
		"none, for it has none yet":                          {"spec: {ports: [{port: 1}]}", nil},
		"none, for it is a name for another one":             {"spec: {type: ExternalName, externalName: example.com}", nil},
		"no address that is none":                            {"spec: {clusterIPs: [10.0.0.1, x, 'fe80::1%eth0', 10.0.0.01]}", []string{"10.0.0.1"}},
		"no port without a number, or with one that is none": {"spec: {clusterIP: 10.0.0.1, ports: [{name: a, port: 0}, {name: b, port: 65536}, {name: c, port: 2, protocol: ICMP}]}", []string{"10.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Service(cluster2(), object[corev1.Service](t, c.service), nil)
			if d := cmp.Diff(c.want, text(s.Frontends)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheBackendsOfAService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slices []string // YAML documents
		want   []string
	}{
		"conditions": {[]string{`
addressType: IPv4
endpoints:
- {addresses: [10.0.0.1]}
- {addresses: [10.0.0.2], conditions: {ready: true, serving: false}}
- {addresses: [10.0.0.3], conditions: {ready: false}}
- {addresses: [10.0.0.4], conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.0.0.5], conditions: {ready: false, serving: false, terminating: true}}
- {addresses: [10.0.0.6], conditions: {serving: false}}`}, []string{"10.0.0.1", "10.0.0.2", "10.0.0.4", "10.0.0.6"}},
		"ports": {[]string{`
addressType: IPv4
endpoints: [{addresses: [10.0.0.1, 10.0.0.2]}]
ports: [{port: 1}, {name: none}, {name: zero, port: 0}, {name: udp, port: 2, protocol: UDP}, {name: odd, port: 3, protocol: odd}]`}, []string{"10.0.0.1 /TCP udp/UDP", "10.0.0.2 /TCP udp/UDP"}},
		"names are no backends":   {[]string{"{addressType: FQDN, endpoints: [{addresses: [example.com]}]}"}, nil},
		"nor are texts":           {[]string{"{addressType: IPv4, endpoints: [{addresses: [x, 10.0.0.1, 'fe80::1%e']}]}"}, []string{"10.0.0.1"}},
		"one address in one form": {[]string{"{addressType: IPv6, endpoints: [{addresses: ['FD00:0::1']}, {addresses: ['fd00::1']}]}"}, []string{"fd00::1"}},
		"an address in two slices has the ports of both": {[]string{
			"{metadata: {name: b}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}], ports: [{name: b, port: 1}, {name: c, port: 1}]}",
			"{metadata: {name: a}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}], ports: [{name: a, port: 1}, {name: c, port: 1, protocol: UDP}]}",
		}, []string{"10.0.0.1 a/TCP b/TCP c/TCP"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var slices []*discoveryv1.EndpointSlice
			for _, text := range c.slices {
				slices = append(slices, object[discoveryv1.EndpointSlice](t, text))
			}
			s := Service(cluster2(), new(corev1.Service), slices)
			if d := cmp.Diff(c.want, text(s.Backends)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestASliceHasNothingThatReadersRefuseItFor(t *testing.T) {
	t.Parallel()
	if EndpointSlice(cluster2(), object[discoveryv1.EndpointSlice](t, "{addressType: FQDN, endpoints: [{addresses: [example.com]}]}")) != nil {
		t.Error("a slice of names is published")
	}
	s := EndpointSlice(cluster2(), object[discoveryv1.EndpointSlice](t, `
metadata: {namespace: default, name: odd}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1, x]}, {addresses: ['fd00::1']}, {addresses: []}, {addresses: [10.0.0.2], conditions: {ready: false}}]`))
	got, err := wire.DecodeEndpointSlice("default/odd", s.Encode(), wire.Expect{Cluster: "cluster2", ClusterID: 2})
	must(t, err)
	if len(got.Endpoints) != 2 || got.Endpoints[0].Addresses[0] != "10.0.0.1" || got.Endpoints[1].Addresses[0] != "10.0.0.2" {
		t.Errorf("endpoints %+v", got.Endpoints)
	}
}

func TestAnExportHasNothingThatReadersRefuseItFor(t *testing.T) {
	t.Parallel()
	export := object[local.ServiceExport](t, "metadata: {namespace: default, name: odd}")
	if ServiceExport(cluster2(), export, object[corev1.Service](t, "spec: {type: ExternalName}")) != nil {
		t.Error("a name for something elsewhere is exported")
	}
	const odd = "spec: {sessionAffinity: x, internalTrafficPolicy: x, trafficDistribution: x, clusterIP: NONE}"
	for name, c := range map[string]struct{ service, created string }{
		"no age":            {odd, "1970-01-01T00:00:00Z"},
		"the service's age": {"{metadata: {creationTimestamp: '2026-01-01T00:00:00Z'}, " + odd + "}", "2026-01-01T00:00:00Z"},
	} {
		s := ServiceExport(cluster2(), export, object[corev1.Service](t, c.service))
		got, err := wire.DecodeServiceExport("default/odd", s.Encode(), wire.Expect{Cluster: "cluster2"})
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got.Type != wire.ServiceExportHeadless, got.ExportCreationTimestamp.UTC().Format("2006-01-02T15:04:05Z") != c.created:
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTheNodesOfKubernetes(t *testing.T) {
	t.Parallel()
	n, err := Node(cluster2(), object[corev1.Node](t, `
metadata: {name: n1, labels: {zone: a}}
spec: {podCIDR: 10.1.0.0/24, podCIDRs: [10.1.0.0/24, "fd00:1::/64", 10.2.0.0/24]}
status:
  addresses:
  - {type: Hostname, address: n1}
  - {type: InternalIP, address: 192.168.0.1}
  - {type: ExternalIP, address: "2001:db8::1"}
  - {type: InternalDNS, address: n1.internal}
  - {type: InternalIP, address: ""}`))
	must(t, err)
	const want = `{"Name":"n1","Cluster":"cluster2","IPAddresses":[{"Type":"InternalIP","IP":"192.168.0.1"},{"Type":"ExternalIP","IP":"2001:db8::1"}],` +
		`"IPv4AllocCIDR":{"IP":"10.1.0.0","Mask":"////AA=="},"IPv4SecondaryAllocCIDRs":[{"IP":"10.2.0.0","Mask":"////AA=="}],` +
		`"IPv6AllocCIDR":{"IP":"fd00:1::","Mask":"//////////8AAAAAAAAAAA=="},"IPv6SecondaryAllocCIDRs":null,"IPv4HealthIP":"","IPv6HealthIP":"",` +
		`"IPv4IngressIP":"","IPv6IngressIP":"","ClusterID":2,"Source":"k8s","EncryptionKey":0,"Labels":{"zone":"a"},"Annotations":null,"WireguardPubKey":"","BootID":""}`
	if d := cmp.Diff(want, string(n.Encode())); d != "" {
		t.Error(d)
	}
	n, err = Node(cluster2(), object[corev1.Node](t, "{metadata: {name: n2}, spec: {podCIDR: 10.3.0.0/24}}"))
	if err != nil || n.IPv4AllocCIDR == nil {
		t.Errorf("a node with podCIDR alone: %+v, %v", n, err)
	}
}

// networks are those of a node's pods, the primary one of each family first.
func networks(n *wire.Node) (out []string) {
	add := func(all ...*wire.CIDR) {
		for _, c := range all {
			if c != nil {
				out = append(out, (&net.IPNet{IP: c.IP, Mask: c.Mask}).String())
			}
		}
	}
	add(n.IPv4AllocCIDR)
	for _, c := range n.IPv4SecondaryAllocCIDRs {
		add(&c)
	}
	add(n.IPv6AllocCIDR)
	for _, c := range n.IPv6SecondaryAllocCIDRs {
		add(&c)
	}
	return out
}

func TestTheNetworksOfACiliumNode(t *testing.T) {
	t.Parallel()
	for ipam, want := range map[string][]string{
		"{podCIDRs: [10.1.0.0/24, 'fd00:1::/64', 10.2.0.0/24]}": {"10.1.0.0/24", "10.2.0.0/24", "fd00:1::/64"},
		"{podCIDRs: [10.1.0.7/24]}":                             {"10.1.0.0/24"},
		"{pools: {allocated: [{cidrs: [10.1.0.0/27, 10.1.0.64/27]}, {cidrs: ['fd00:1::/80', 'fd00:2::/80', 10.3.0.0/28]}]}}": {"10.1.0.0/27", "10.1.0.64/27", "10.3.0.0/28", "fd00:1::/80", "fd00:2::/80"},
		"{podCIDRs: [10.1.0.0/24], pools: {allocated: [{cidrs: [10.2.0.0/27]}]}}":                                            {"10.1.0.0/24", "10.2.0.0/27"},
		"{podCIDRs: [], pools: {allocated: [{}]}}":                                                                           nil,
	} {
		n, err := CiliumNode(cluster2(), object[local.CiliumNode](t, "{metadata: {name: n1}, spec: {ipam: "+ipam+"}}"))
		if err != nil {
			t.Errorf("%s: %v", ipam, err)
		} else if d := cmp.Diff(want, networks(n)); d != "" {
			t.Errorf("%s: %s", ipam, d)
		}
	}
}

// TestWhatCannotBeReadOfANodeIsLeftOut: the rest of the node is published.
func TestWhatCannotBeReadOfANodeIsLeftOut(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"ipam: {podCIDRs: [10.1.0.0, 10.1.0.0/24]}":                               `the CiliumNode n1: spec.ipam.podCIDRs: "10.1.0.0" is no network`,
		"ipam: {pools: {allocated: [{cidrs: ['', 10.1.0.0/24, 10.1.600.0/24]}]}}": `spec.ipam.pools.allocated: "10.1.600.0/24" is no network`,
		"health: {ipv4: x}, ipam: {podCIDRs: [10.1.0.0/24]}":                      `spec.health.ipv4: "x" is no IP address`,
		"ingress: {ipv6: x}, ipam: {podCIDRs: [10.1.0.0/24]}":                     `spec.ingress.ipv6: "x" is no IP address`,
	} {
		n, err := CiliumNode(cluster2(), object[local.CiliumNode](t, "{metadata: {name: n1}, spec: {addresses: [{type: Hostname, ip: host-9}, {type: InternalIP, ip: 192.0.2.9}], "+spec+"}}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
		if n == nil || len(n.IPAddresses) != 1 || !slices.Equal(networks(n), []string{"10.1.0.0/24"}) {
			t.Errorf("%s: %+v", spec, n)
		}
	}
	n, err := Node(cluster2(), object[corev1.Node](t, "{metadata: {name: n1}, spec: {podCIDRs: [x, 10.1.0.0/24]}}"))
	if err == nil || !strings.Contains(err.Error(), `the Node n1: spec.podCIDRs: "x" is no network`) || !slices.Equal(networks(n), []string{"10.1.0.0/24"}) {
		t.Errorf("%+v: %v", n, err)
	}
}

func TestNodesThatCannotBePublished(t *testing.T) {
	t.Parallel()
	n, err := CiliumNode(cluster2(), object[local.CiliumNode](t, "{metadata: {name: n1}, spec: {encryption: {key: 256}}}"))
	if n != nil || err == nil || !strings.Contains(err.Error(), "the CiliumNode n1: invalid encryption key 256: it must be 0 to 255") {
		t.Errorf("%+v: %v", n, err)
	}
}
