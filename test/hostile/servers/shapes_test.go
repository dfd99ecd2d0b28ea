package servers

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// shape is an object of a resource with one text in one of its fields.
type shape struct {
	what string
	of   func(c *cluster, i int, text string) (key string, value []byte)
}

// raw writes an object as JSON whose texts keep bytes that are not UTF-8, which encoding/json would replace: a
// placeholder marks the place of the text.
func raw(object []byte, text string) []byte {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\x00", `\u0000`, "\x1b", `\u001b`, "\x07", `\u0007`).Replace(text)
	return []byte(strings.ReplaceAll(string(object), place, quoted))
}

// place is the placeholder.
const place = "TEXTPLACE"

// evilAddr is an address of the attacker's.
func (c *cluster) evilAddr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(c.id), 128 | byte(i>>8), byte(i)})
}

// shapes has each text field of each resource.
func shapes() []shape {
	service := func(what string, put func(s *wire.Service)) shape {
		return shape{"service: " + what, func(c *cluster, i int, text string) (string, []byte) {
			s := c.service(fmt.Sprintf("evil-%d", i), 80)
			s.Backends[c.evilAddr(i).String()] = wire.Ports{"http": {Protocol: "TCP", Port: 8080}}
			put(s)
			key := wire.Services.Key(c.name, false, strings.ReplaceAll(s.Namespace+"/"+s.Name, place, text))
			return key, raw(s.Encode(), text)
		}}
	}
	backends := func(s *wire.Service, ports wire.Ports) {
		for ip := range s.Backends {
			s.Backends[ip] = ports
		}
	}
	slice := func(what string, put func(s *wire.EndpointSlice, text string)) shape {
		return shape{"slice: " + what, func(c *cluster, i int, text string) (string, []byte) {
			tcp, port, http := "TCP", int32(8080), "http"
			s := &wire.EndpointSlice{
				Cluster: c.name, ClusterID: c.id, Namespace: "ns", Name: fmt.Sprintf("evil-slice-%d", i), AddressType: wire.AddressTypeIPv4,
				Labels:    map[string]string{wire.LabelServiceName: fmt.Sprintf("svc%d", i%numServices)},
				Endpoints: []wire.Endpoint{{Addresses: []string{c.addr(i % numServices * 4).String()}}},
				Ports:     []wire.EndpointPort{{Name: &http, Protocol: &tcp, Port: &port}},
			}
			put(s, text)
			return s.Key(), s.Encode()
		}}
	}
	export := func(what string, put func(s *wire.ServiceExport)) shape {
		return shape{"export: " + what, func(c *cluster, i int, text string) (string, []byte) {
			s := &wire.ServiceExport{
				Cluster: c.name, Namespace: "ns", Name: fmt.Sprintf("evil-%d", i), Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
				ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(1e9, 0)}, Ports: []wire.ServiceExportPort{{Name: "http", Protocol: "TCP", Port: 80}},
			}
			put(s)
			return wire.ServiceExports.Key(c.name, false, strings.ReplaceAll(s.Namespace+"/"+s.Name, place, text)), raw(s.Encode(), text)
		}}
	}
	node := func(what string, put func(n *wire.Node)) shape {
		return shape{"node: " + what, func(c *cluster, i int, text string) (string, []byte) {
			n := &wire.Node{Name: fmt.Sprintf("evil-%d", i), Cluster: c.name, ClusterID: c.id, BootID: "b", IPAddresses: []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.IP(c.evilAddr(i).AsSlice())}}}
			put(n)
			return wire.Nodes.Key(c.name, false, strings.ReplaceAll(n.Name, place, text)), raw(n.Encode(), text)
		}}
	}
	pair := func(what string, put func(p *wire.IPIdentityPair)) shape {
		return shape{"address: " + what, func(c *cluster, i int, text string) (string, []byte) {
			p := wire.NewHostPair(c.evilAddr(i))
			p.Identity, p.Pod, p.Namespace = c.id<<16+1, "pod", "ns"
			put(&p)
			b, err := json.Marshal(p)
			if err != nil {
				panic(err) // it has only texts and numbers
			}
			return p.Key(), raw(b, text)
		}}
	}
	labels := func(key bool) map[string]string {
		if key {
			return map[string]string{place: "v"}
		}
		return map[string]string{"app": place}
	}
	return []shape{
		service("name", func(s *wire.Service) { s.Name = place }),
		service("namespace", func(s *wire.Service) { s.Namespace = place }),
		service("port name", func(s *wire.Service) {
			backends(s, wire.Ports{place: {Protocol: "TCP", Port: 8080}, "http": {Protocol: "TCP", Port: 8081}})
		}),
		service("protocol", func(s *wire.Service) { backends(s, wire.Ports{"http": {Protocol: place, Port: 8080}}) }),
		service("label", func(s *wire.Service) { s.Labels = labels(false) }),
		service("label key", func(s *wire.Service) { s.Labels = labels(true) }),
		service("selector", func(s *wire.Service) { s.Selector = labels(false) }),
		service("hostname", func(s *wire.Service) { s.Hostnames = ofAll(s.Backends, place) }),
		service("zone", func(s *wire.Service) { s.Zones = ofAll(s.Backends, wire.Zone{Zone: place}) }),
		service("zone hint", func(s *wire.Service) {
			s.Zones = ofAll(s.Backends, wire.Zone{Zone: "a", ForZones: []wire.ForZone{{Name: place}}})
		}),
		slice("name", func(s *wire.EndpointSlice, text string) { s.Name = text }),
		slice("service", func(s *wire.EndpointSlice, text string) { s.Labels[wire.LabelServiceName] = text }),
		slice("label key", func(s *wire.EndpointSlice, text string) { s.Labels[text] = "v" }),
		slice("annotation", func(s *wire.EndpointSlice, text string) { s.Annotations = map[string]string{text: text} }),
		slice("zone", func(s *wire.EndpointSlice, text string) { s.Endpoints[0].Zone = &text }),
		slice("hostname", func(s *wire.EndpointSlice, text string) { s.Endpoints[0].Hostname = &text }),
		slice("node", func(s *wire.EndpointSlice, text string) { s.Endpoints[0].NodeName = &text }),
		slice("topology", func(s *wire.EndpointSlice, text string) {
			s.Endpoints[0].DeprecatedTopology = map[string]string{text: text}
		}),
		slice("zone hint", func(s *wire.EndpointSlice, text string) {
			s.Endpoints[0].Hints = &wire.EndpointHints{ForZones: []wire.ForZone{{Name: text}}}
		}),
		slice("port name", func(s *wire.EndpointSlice, text string) { s.Ports[0].Name = &text }),
		slice("protocol", func(s *wire.EndpointSlice, text string) { s.Ports[0].Protocol = &text }),
		slice("application protocol", func(s *wire.EndpointSlice, text string) { s.Ports[0].AppProtocol = &text }),
		export("name", func(s *wire.ServiceExport) { s.Name = place }),
		export("label", func(s *wire.ServiceExport) { s.Labels = labels(false) }),
		export("annotation", func(s *wire.ServiceExport) { s.Annotations = labels(true) }),
		export("port name", func(s *wire.ServiceExport) { s.Ports[0].Name = place }),
		export("protocol", func(s *wire.ServiceExport) { s.Ports[0].Protocol = place }),
		export("IP family", func(s *wire.ServiceExport) { s.IPFamilies = []string{place} }),
		node("name", func(n *wire.Node) { n.Name = place }),
		node("label", func(n *wire.Node) { n.Labels = labels(false) }),
		node("zone", func(n *wire.Node) { n.Labels = map[string]string{"topology.kubernetes.io/zone": place} }),
		node("label key", func(n *wire.Node) { n.Labels = labels(true) }),
		node("annotation", func(n *wire.Node) { n.Annotations = labels(true) }),
		node("address type", func(n *wire.Node) { n.IPAddresses[0].Type = place }),
		node("boot ID", func(n *wire.Node) { n.BootID = place }),
		node("WireGuard key", func(n *wire.Node) { n.WireguardPubKey = place }),
		{"identity: labels", func(c *cluster, i int, text string) (string, []byte) {
			return wire.IdentityKey(c.id<<16 + 1000 + uint32(i)), fmt.Appendf(nil, "k8s:app=%s;k8s:%s=v;k8s:io.cilium.k8s.policy.cluster=%s;", text, text, c.name)
		}},
		pair("pod", func(p *wire.IPIdentityPair) { p.Pod = place }),
		pair("namespace", func(p *wire.IPIdentityPair) { p.Namespace = place }),
		pair("port name", func(p *wire.IPIdentityPair) { p.NamedPorts = []wire.NamedPort{{Name: place, Port: 1, Protocol: "TCP"}} }),
	}
}

// ofAll has one value for each address.
func ofAll[V any](backends map[string]wire.Ports, v V) map[string]V {
	all := make(map[string]V)
	for ip := range backends {
		all[ip] = v
	}
	return all
}

// collisions are services whose names are equal to others once they are joined.
func collisions(c *cluster) map[string][]byte {
	all := make(map[string][]byte)
	for i, name := range [][2]string{{"shop", "my-cart"}, {"shop-my", "cart"}, {"shop", "my.cart"}, {"shop.my", "cart"}, {"a", "b--c"}, {"a-b", "-c"}} {
		s := c.service(name[1], 80)
		s.Namespace = name[0]
		s.Backends[c.evilAddr(20_000+i).String()] = wire.Ports{"http": {Protocol: "TCP", Port: 8080}}
		all[s.Key()] = s.Encode()
	}
	s := c.service("empty", 80) // without backends
	all[s.Key()] = s.Encode()
	return all
}

// writeHostile writes every text into every field, and returns the number of keys.
func writeHostile(c *cluster) (keys int, err error) {
	all, i := collisions(c), 0
	for _, s := range shapes() {
		for _, t := range hostileTexts() {
			i++
			key, value := s.of(c, i, t.text)
			all[key] = value
		}
	}
	return len(all), c.write(all)
}
