package wire

import (
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestNames(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("a", n) }
	for rule, c := range map[string]struct {
		is       func(string) bool
		yes, not []string
	}{
		"label": {
			isLabel,
			[]string{"a", "0", "cart", "kube-dns", "1-a", long(63)},
			[]string{"", "-a", "a-", "A", "a.b", "a_b", "a b", "a\n", "\x00", "ä", long(64)},
		},
		"subdomain": {
			isSubdomain,
			[]string{"a", "node3.example.com", "web-0", "a.0", long(253)},
			[]string{"", ".a", "a.", "a..b", "a.-b", "a-.b", "A.b", "a/b", "a_b", long(254)},
		},
		"node": {
			isNode,
			[]string{"a", "WIN-2K19", "my_host.lan", "ip-10-0-0-1.ec2.internal", long(253)},
			[]string{"", "a/b", "a..b", ".a", "_a", "a b", "a\nb", "a{b", long(254)},
		},
		"label value": {
			isLabelValue,
			[]string{"", "a", "A.b_c-9", "eu-west-1b", long(63)},
			[]string{" ", "-", "a b", "a;b", "a=b", "a\n", "\xff", long(64)},
		},
		"qualified name": {
			isQualified,
			[]string{"a", "App_Name.v1", "kubernetes.io/service-name", "k8s.io/a_b", "Example.com/x", long(253) + "/" + long(63)},
			[]string{"", "/a", "a/", "a/b/c", "a b", "a_b/c", "a..b/c", "a\n/b", long(64), long(254) + "/a"},
		},
		"token": {
			isToken,
			[]string{"", "TCP", "WHAT", "InternalIP", "IPv9"},
			[]string{"T CP", "TCP\n", "TCP;", "\xff", long(33)},
		},
		"printable": {
			isPrintable,
			[]string{"", "a b", "x=y;z", "zażółć", "日本語", "🚀", "\ufffd", long(1024)},
			[]string{"\x00", "a\nb", "a\tb", "\x7f", "\u0085", "\u2028", "\u202e", "\u2066", "\ufeff", "\xff", long(1025)},
		},
	} {
		for _, s := range c.yes {
			if !c.is(s) {
				t.Errorf("%q is no %s", s, rule)
			}
		}
		for _, s := range c.not {
			if c.is(s) {
				t.Errorf("%q is a %s", s, rule)
			}
		}
	}
}

// hostile returns texts that can break files, terminals, protocols and messages.
func hostile() map[string]string {
	return map[string]string{
		"a line break": "a\nserver b", "a carriage return": "a\rb", "braces": "a {b}", "a quote": `a"b`, "a semicolon": "a;b", "a NUL": "a\x00b",
		"an escape": "a\x1b[2Jb", "C1": "a\u009bb", "the other direction": "a\u202eb", "a line separator": "a\u2028b", "no UTF-8": "a\xffb",
		"half a character": "a\xc3", "look-alikes": "саrt", "much": strings.Repeat("a", 2000), "a path": "../../etc/passwd", "a template": "{{ .X }}",
	}
}

// eachText calls visit with each text of a value, including the keys and values of its maps, and with a function that
// replaces it.
func eachText(v reflect.Value, path string, visit func(path, is string, set func(string))) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), path, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[ExportTime]() {
				eachText(v.Field(i), path+"."+f.Name, visit)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			eachText(v.Index(i), path, visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := v.MapIndex(key)
			visit(path+".key", key.String(), func(s string) {
				v.SetMapIndex(key, reflect.Value{})
				if s != "" {
					key = reflect.ValueOf(s)
				}
				v.SetMapIndex(key, value)
			})
			if value.Kind() == reflect.String {
				visit(path+".value", value.String(), func(s string) { v.SetMapIndex(key, reflect.ValueOf(s)) })
			} else {
				changed := reflect.New(value.Type()).Elem()
				changed.Set(value)
				eachText(changed, path, func(p, is string, set func(string)) {
					visit(p, is, func(s string) { set(s); v.SetMapIndex(key, changed) })
				})
			}
		}
	case reflect.String:
		visit(path, v.String(), v.SetString)
	}
}

// TestNoHostileTextIsRead replaces each text of each kind of entry with each hostile text, one at a time.
func TestNoHostileTextIsRead(t *testing.T) {
	t.Parallel()
	yes, word, zone := true, "http", "eu-a"
	type one struct {
		value  any // a pointer
		name   func() string
		encode func() []byte
		decode func(name string, value []byte) (any, error)
	}
	node := &Node{
		Name: "n", Cluster: "cluster2", ClusterID: 2, IPAddresses: []NodeAddress{{AddressInternalIP, net.IP{10, 0, 0, 1}}}, Source: "local",
		Labels: map[string]string{"a/b": "c"}, Annotations: map[string]string{"a/b": "c"}, WireguardPubKey: "abc=", BootID: "x",
	}
	service := &Service{
		Cluster: "cluster2", Namespace: "ns", Name: "x", ClusterID: 2, Frontends: map[string]Ports{"10.0.0.9": {"http": {"TCP", 80}}},
		Backends: map[string]Ports{"10.0.0.1": {"http": {"TCP", 80}}}, Hostnames: map[string]string{"10.0.0.1": "h"},
		Zones: map[string]Zone{"10.0.0.1": {"eu-a", []ForZone{{"eu-b"}}}}, Labels: map[string]string{"a/b": "c"}, Selector: map[string]string{"a/b": "c"},
	}
	slice := &EndpointSlice{
		Cluster: "cluster2", ClusterID: 2, Namespace: "ns", Name: "x", Labels: map[string]string{"a/b": "c"}, Annotations: map[string]string{"a/b": "c"},
		AddressType: AddressTypeIPv4, Ports: []EndpointPort{{Name: &word, Protocol: &word, AppProtocol: &word}},
		Endpoints: []Endpoint{{
			Addresses: []string{"10.0.0.1"}, Conditions: EndpointConditions{Ready: &yes}, Hostname: &word, DeprecatedTopology: map[string]string{"a/b": "c"},
			NodeName: &word, Zone: &zone, Hints: &EndpointHints{[]ForZone{{"eu-b"}}},
		}},
	}
	export := &ServiceExport{
		Cluster: "cluster2", Name: "x", Namespace: "ns", Labels: map[string]string{"a/b": "c"}, Annotations: map[string]string{"a/b": "c"},
		ExportCreationTimestamp: ExportTime{time.Unix(1, 0)}, Ports: []ServiceExportPort{{Name: "http", Protocol: "TCP", AppProtocol: &word, Port: 1}},
		Type: ServiceExportHeadless, SessionAffinity: SessionAffinityNone, IPFamilies: []string{"IPv4"},
	}
	pair := NewHostPair(netip.MustParseAddr("10.0.0.1"))
	pair.Identity, pair.Namespace, pair.Pod = 6, "ns", "web-0"
	identity := &Identity{ID: 131072, Labels: Labels{{"k8s", LabelCluster, "cluster2"}, {"container", "a", "b"}}}
	for kind, c := range map[string]one{
		"node": {node, func() string { return node.Name }, node.Encode, func(n string, v []byte) (any, error) { return DecodeNode(n, v, cluster2) }},
		"service": {service, func() string { return service.Namespace + "/" + service.Name }, service.Encode, func(n string, v []byte) (any, error) {
			return DecodeService(n, v, cluster2)
		}},
		"slice": {slice, func() string { return slice.Namespace + "/" + slice.Name }, slice.Encode, func(n string, v []byte) (any, error) {
			return DecodeEndpointSlice(n, v, cluster2)
		}},
		"export": {export, func() string { return export.Namespace + "/" + export.Name }, export.Encode, func(n string, v []byte) (any, error) {
			return DecodeServiceExport(n, v, cluster2)
		}},
		"ip": {&pair, func() string { return "10.0.0.1" }, pair.Encode, func(n string, v []byte) (any, error) { return DecodeIP(n, v, cluster2) }},
		"identity": {identity, func() string { return "131072" }, identity.Encode, func(n string, v []byte) (any, error) {
			return DecodeIdentity(n, v, cluster2)
		}},
	} {
		if _, err := c.decode(c.name(), c.encode()); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		eachText(reflect.ValueOf(c.value), kind, func(path, is string, set func(string)) {
			for what, text := range hostile() {
				set(text)
				got, err := c.decode(c.name(), c.encode())
				if err == nil {
					judgeRead(t, path, what, text, reflect.ValueOf(got))
				}
				set(is)
			}
		})
		if _, err := c.decode(c.name(), c.encode()); err != nil {
			t.Fatalf("%s was not put back: %v", kind, err)
		}
	}
}

// judgeRead fails the test unless the text is allowed at its place as free text, or was left out.
func judgeRead(t *testing.T, path, what, text string, got reflect.Value) {
	t.Helper()
	var accepts func(string) bool
	switch path {
	case "ip.Metadata", "ip.ServiceAccount", "service.Hostnames.key", "service.Zones.key": // not kept
		return
	case "node.Annotations.value", "slice.Annotations.value", "export.Annotations.value":
		accepts = utf8.ValidString
	case "export.Labels.key", "export.Labels.value", "node.Source", "node.WireguardPubKey", "node.BootID",
		"identity.Labels.Source", "identity.Labels.Key", "identity.Labels.Value":
		accepts = isPrintable
	}
	if accepts != nil && (accepts(text) || accepts(strings.ToValidUTF8(text, "\ufffd"))) {
		return
	}
	eachText(got, "", func(at, is string, _ func(string)) {
		if strings.Contains(is, text) || strings.Contains(is, strings.ToValidUTF8(text, "\ufffd")) {
			t.Errorf("%s with %s was read: %s is %.100q", path, what, at, is)
		}
	})
}
