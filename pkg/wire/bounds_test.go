package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// allocated returns the number of bytes that f allocates. No other test may run at the same time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestACompressedValueIsBounded: without a bound, endpoints of 2 bytes, which need 88 in memory, took gigabytes when
// they were packed into a value of less than 2 KB.
func TestACompressedValueIsBounded(t *testing.T) {
	e := NewSliceEncoder()
	defer e.Close()
	d := NewSliceDecoder()
	head := (&EndpointSlice{Cluster: "cluster2", ClusterID: 2, Namespace: "ns", Name: "x", AddressType: AddressTypeIPv4}).appendProto(nil)
	random := make([]byte, MaxValue/2) // keeps the decoder's memory at its largest
	for i := range random {
		random[i] = byte(i * i >> 8)
	}
	for range cap(d.idle) {
		_, _ = d.Decode("ns/x", e.zstd.EncodeAll(random, nil), cluster2)
	}
	for name, unpacked := range map[string]int{"all that fits in 16 MiB": 16 << 20, "all that fits": MaxValue} {
		value := e.zstd.EncodeAll(append(slices.Clone(head), bytes.Repeat([]byte{8<<3 | 2, 0}, (unpacked-len(head))/2)...), nil)
		var err error
		cost := allocated(func() { _, err = d.Decode("ns/x", value, cluster2) })
		if r := checkRejected(t, err); r.Reason != ReasonTooLarge {
			t.Errorf("%s: %v", name, err)
		}
		if cost > 64<<10 {
			t.Errorf("%s: %d bytes took %d", name, len(value), cost)
		}
	}
	// The most expensive value that is accepted is bounded as well.
	entries := bytes.Repeat(appendMap(nil, 6, map[string]string{"a": "b"}), 9000)
	padding := appendString(nil, 99, strings.Repeat("x", MaxValue-len(head)-len(entries)-16))
	value := e.zstd.EncodeAll(slices.Concat(head, entries, padding), nil)
	var err error
	cost := allocated(func() { _, err = d.Decode("ns/x", value, cluster2) })
	if cost > MaxCost*MaxValue || err != nil {
		t.Errorf("%d bytes took %d (%v)", len(value), cost, err)
	}
}

// TestWhatKubernetesAllowsIsNotTooLarge: slices written by hand may have many entries with short addresses, or labels
// only.
func TestWhatKubernetesAllowsIsNotTooLarge(t *testing.T) {
	slice := func(endpoints, addresses int) *EndpointSlice {
		s := &EndpointSlice{Cluster: "cluster2", ClusterID: 2, Namespace: "ns", Name: "x", AddressType: AddressTypeIPv4}
		for i := range endpoints {
			var e Endpoint
			for j := range addresses {
				e.Addresses = append(e.Addresses, fmt.Sprintf("1.%d.%d.%d", i%10, j%10, j/10))
			}
			s.Endpoints = append(s.Endpoints, e)
		}
		return s
	}
	most := slice(20, 100)
	for i := range 100 {
		most.Ports = append(most.Ports, EndpointPort{Port: new(int32(i))})
	}
	labelled := slice(0, 0)
	labelled.Labels = make(map[string]string)
	for i := range 200 {
		labelled.Labels[fmt.Sprintf("app-%d", i)] = ""
	}
	for name, s := range map[string]*EndpointSlice{
		"200 short labels": labelled, "1000 endpoints with one short address": slice(1000, 1), "1000 with 100 addresses": slice(1000, 100), "20 with 100 addresses and 100 ports": most,
	} {
		got, err := DecodeEndpointSlice("ns/x", s.Encode(), cluster2)
		if err != nil || len(got.Endpoints) != len(s.Endpoints) || len(got.Ports) != len(s.Ports) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAFrameThatClaimsMuchGetsNothing: a frame that declares a large content or window does not cause an allocation of
// that size.
func TestAFrameThatClaimsMuchGetsNothing(t *testing.T) {
	const magic = "\x28\xb5\x2f\xfd"
	d := NewSliceDecoder()
	for range cap(d.idle) { // until it has its usual memory
		_, _ = d.Decode("ns/x", (&EndpointSlice{}).Encode(), cluster2)
	}
	for name, header := range map[string]string{
		"16 MiB of contents":   "\xa0\x00\x00\x00\x01",
		"exabytes of contents": "\xe0\x00\x00\x00\x00\x00\x00\x00\x10",
		"a window of 8 MiB":    "\x00\x68",
		"a window of 512 MiB":  "\x00\x98",
		"the largest window":   "\x00\xff",
	} {
		value := []byte(magic + header + "\x01\x00\x00") // an empty block
		var err error
		if cost := allocated(func() { _, err = d.Decode("ns/x", value, cluster2) }); cost > MaxValue+64<<10 {
			t.Errorf("%s: %d bytes", name, cost)
		}
		checkRejected(t, err)
	}
}

// TestALargeWindowIsRead: streaming writers declare a window of 8 MiB, even for small values.
func TestALargeWindowIsRead(t *testing.T) {
	t.Parallel()
	message := (&EndpointSlice{Cluster: "cluster2", ClusterID: 2, Namespace: "ns", Name: "x", AddressType: AddressTypeIPv4}).appendProto(nil)
	value := append([]byte("\x28\xb5\x2f\xfd\x00\x68"), byte(len(message)<<3|1), byte(len(message)>>5), 0)
	if _, err := DecodeEndpointSlice("ns/x", append(value, message...), cluster2); err != nil {
		t.Error(err)
	}
}

// TestBracketsInAStringTakeNothing: earlier, brackets within a string were counted as ports of 40 bytes each.
func TestBracketsInAStringTakeNothing(t *testing.T) {
	value := []byte(`{"IP":"10.0.0.1","Mask":null,"HostIP":"","ID":6,"Key":0,"Metadata":"","NamedPorts":[` +
		`{"Name":"a","Port":1,"Protocol":"TCP"},{"Name":"` + strings.Repeat("{", 1_400_000) + `","Port":1,"Protocol":"TCP"}]}`)
	cost := allocated(func() {
		for range 20 {
			if _, err := DecodeIP("10.0.0.1", value, cluster2); err != nil {
				t.Error(err)
			}
		}
	})
	if bound := uint64(20 * len(value) / 10); cost > bound {
		t.Errorf("20 values of %d bytes take %d", len(value), cost)
	}
}

// several returns a map with n different keys.
func several[T any](n int, key func(int) string, value T) map[string]T {
	m := make(map[string]T, n)
	for i := range n {
		m[key(i)] = value
	}
	return m
}

func address(i int) string {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
}

// TestBounds: a value with as many items as the bound allows is read, and one with one more is not.
func TestBounds(t *testing.T) {
	t.Parallel()
	node := func(n Node) []byte { n.Name, n.Cluster, n.ClusterID = "x", "cluster2", 2; return n.Encode() }
	service := func(s Service) []byte {
		s.Cluster, s.Namespace, s.Name, s.ClusterID = "cluster2", "ns", "x", 2
		return s.Encode()
	}
	slice := func(s EndpointSlice) []byte {
		s.Cluster, s.Namespace, s.Name, s.ClusterID, s.AddressType = "cluster2", "ns", "x", 2, AddressTypeIPv4
		return s.Encode()
	}
	export := func(s ServiceExport) []byte {
		s.Cluster, s.Namespace, s.Name, s.Type = "cluster2", "ns", "x", ServiceExportHeadless
		s.SessionAffinity, s.ExportCreationTimestamp.Time = SessionAffinityNone, time.Unix(1, 0)
		return s.Encode()
	}
	readNode := func(v []byte) error { _, err := DecodeNode("x", v, cluster2); return err }
	readService := func(v []byte) error { _, err := DecodeService("ns/x", v, cluster2); return err }
	readSlice := func(v []byte) error { _, err := DecodeEndpointSlice("ns/x", v, cluster2); return err }
	readExport := func(v []byte) error { _, err := DecodeServiceExport("ns/x", v, cluster2); return err }
	readIP := func(v []byte) error { _, err := DecodeIP("10.0.0.1", v, cluster2); return err }

	label := func(i int) string { return "example.com/label-" + strconv.Itoa(i) }
	port := func(i int) string { return "port-" + strconv.Itoa(i) }
	cidrs := func(n int) []CIDR { return slices.Repeat([]CIDR{NewCIDR(netip.MustParsePrefix("10.1.0.0/24"))}, n) }
	ports := func(n int) Ports { return several(n, port, &L4{"TCP", 80}) }
	namedPorts := func(n int) []byte {
		return (&IPIdentityPair{IP: net.IP{10, 0, 0, 1}, Identity: 6, NamedPorts: slices.Repeat([]NamedPort{{"http", 80, "TCP"}}, n)}).Encode()
	}
	yes, name, number := true, "http", int32(80)
	for what, c := range map[string]struct {
		bound int
		value func(n int) []byte
		read  func([]byte) error
	}{
		"node addresses": {maxNodeAddrs, func(n int) []byte {
			return node(Node{IPAddresses: slices.Repeat([]NodeAddress{{AddressInternalIP, net.IP{10, 0, 0, 1}}}, n)})
		}, readNode},
		"IPv4 pod CIDRs":   {maxPodCIDRs, func(n int) []byte { return node(Node{IPv4SecondaryAllocCIDRs: cidrs(n)}) }, readNode},
		"IPv6 pod CIDRs":   {maxPodCIDRs, func(n int) []byte { return node(Node{IPv6SecondaryAllocCIDRs: cidrs(n)}) }, readNode},
		"node labels":      {maxLabels, func(n int) []byte { return node(Node{Labels: several(n, label, "x")}) }, readNode},
		"node annotations": {maxLabels, func(n int) []byte { return node(Node{Annotations: several(n, label, "x")}) }, readNode},

		"backends":       {maxBackends, func(n int) []byte { return service(Service{Backends: several(n, address, Ports{})}) }, readService},
		"hostnames":      {maxBackends, func(n int) []byte { return service(Service{Hostnames: several(n, address, "x")}) }, readService},
		"service labels": {maxLabels, func(n int) []byte { return service(Service{Labels: several(n, label, "x")}) }, readService},
		"selector":       {maxLabels, func(n int) []byte { return service(Service{Selector: several(n, label, "x")}) }, readService},
		"ports": {maxPorts, func(n int) []byte {
			return service(Service{Backends: map[string]Ports{"10.0.0.1": ports(n)}})
		}, readService},

		"endpoints": {maxEndpoints, func(n int) []byte {
			ready := EndpointConditions{Ready: &yes, Serving: &yes}
			return slice(EndpointSlice{Endpoints: slices.Repeat([]Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: ready}}, n)})
		}, readSlice},
		"endpoint addresses": {maxAddresses, func(n int) []byte {
			return slice(EndpointSlice{Endpoints: []Endpoint{{Addresses: slices.Repeat([]string{"10.100.100.100"}, n)}}})
		}, readSlice},
		"hints": {maxHintedZones, func(n int) []byte {
			return slice(EndpointSlice{Endpoints: []Endpoint{{Hints: &EndpointHints{slices.Repeat([]ForZone{{"eu"}}, n)}}}})
		}, readSlice},
		"slice ports": {maxPorts, func(n int) []byte {
			return slice(EndpointSlice{Ports: slices.Repeat([]EndpointPort{{Name: &name, Protocol: &name, Port: &number}}, n)})
		}, readSlice},
		"slice labels":      {maxLabels, func(n int) []byte { return slice(EndpointSlice{Labels: several(n, label, "a-value-of-usual-length")}) }, readSlice},
		"slice annotations": {maxLabels, func(n int) []byte { return slice(EndpointSlice{Annotations: several(n, label, "x")}) }, readSlice},

		"export ports": {maxPorts, func(n int) []byte {
			return export(ServiceExport{Ports: slices.Repeat([]ServiceExportPort{{Name: "http", Protocol: "TCP", Port: 80}}, n)})
		}, readExport},
		"IP families": {maxIPFamilies, func(n int) []byte { return export(ServiceExport{IPFamilies: slices.Repeat([]string{"IPv4"}, n)}) }, readExport},

		"named ports":               {maxNamedPorts, namedPorts, readIP},
		"named ports, not as usual": {maxNamedPorts, func(n int) []byte { return append(namedPorts(n), ' ') }, readIP},
		"identity labels": {maxLabels, func(n int) []byte {
			return []byte("k8s:io.cilium.k8s.policy.cluster=cluster2" + strings.Repeat(";k8s:app=web", n-1))
		}, func(v []byte) error { _, err := DecodeIdentity("131072", v, cluster2); return err }},
		"nesting": {maxNesting, func(n int) []byte {
			return []byte(`{"id":2,"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}")
		}, func(v []byte) error { _, err := DecodeClusterConfig(v); return err }},
		"bytes": {
			MaxValue, func(n int) []byte { return []byte(`{"id":2}` + strings.Repeat(" ", n-8)) },
			func(v []byte) error { _, err := DecodeClusterConfig(v); return err },
		},
	} {
		if err := c.read(c.value(c.bound)); err != nil {
			t.Errorf("%s: %d are refused: %v", what, c.bound, err)
		}
		err := c.read(c.value(c.bound + 1))
		if r := checkRejected(t, err); r.Reason != ReasonTooLarge || !strings.Contains(err.Error(), "at most "+strconv.Itoa(c.bound)) {
			t.Errorf("%s: %d: %v", what, c.bound+1, err)
		}
	}
}

func TestALongNameIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("1", MaxName+1)
	for what, decode := range map[string]func() error{
		"node":     func() error { _, err := DecodeNode(name, nil, cluster2); return err },
		"service":  func() error { _, err := DecodeService(name, nil, cluster2); return err },
		"slice":    func() error { _, err := DecodeEndpointSlice(name, nil, cluster2); return err },
		"slices":   func() error { _, err := NewSliceDecoder().Decode(name, nil, cluster2); return err },
		"export":   func() error { _, err := DecodeServiceExport(name, nil, cluster2); return err },
		"identity": func() error { _, err := DecodeIdentity(name, nil, cluster2); return err },
		"IP":       func() error { _, err := DecodeIP(name, nil, cluster2); return err },
		"number":   func() error { _, err := DecodeAllocatedID(name); return err },
	} {
		if err := decode(); checkRejected(t, err).Reason != ReasonTooLarge {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLargeEntriesThatSomebodyMeansAreRead: the largest plausible values are not refused because of their shape: many
// backends with the shortest addresses, no ports and the fewest labels.
func TestLargeEntriesThatSomebodyMeansAreRead(t *testing.T) {
	t.Parallel()
	none, one := Ports{}, Ports{"": {"TCP", 1}}
	zone := Zone{Zone: "a", ForZones: []ForZone{}}
	for name, s := range map[string]Service{
		"no ports": {Backends: several(5_000, address, none)},
		"one port": {Backends: several(5_000, address, one)},
		"all different": {Backends: func() map[string]Ports {
			m := map[string]Ports{}
			for i := range 5_000 {
				m[address(i)] = Ports{"http": {"TCP", uint16(i)}}
			}
			return m
		}()},
		"zones and names": {
			Backends: several(2_000, address, one), Zones: several(2_000, address, zone), Hostnames: several(2_000, address, "web-0"),
		},
	} {
		s.Cluster, s.Namespace, s.Name, s.ClusterID = "cluster2", "ns", "x", 2
		got, err := DecodeService("ns/x", s.Encode(), cluster2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(got.Encode(), s.Encode()) {
			t.Errorf("%s: read as another", name)
		}
	}
	yes := true
	var slice EndpointSlice
	for i := range 1000 {
		node, host, zone := fmt.Sprint("node", i%100), fmt.Sprint("web-", i), string(rune('a'+i%3))
		slice.Endpoints = append(slice.Endpoints, Endpoint{
			Addresses: []string{address(i)}, Conditions: EndpointConditions{&yes, &yes, nil},
			Hostname: &host, NodeName: &node, Zone: &zone, Hints: &EndpointHints{[]ForZone{{zone}}},
		})
	}
	slice.Cluster, slice.ClusterID, slice.Namespace, slice.Name, slice.AddressType = "cluster2", 2, "ns", "x", AddressTypeIPv4
	if _, err := DecodeEndpointSlice("ns/x", slice.Encode(), cluster2); err != nil {
		t.Error(err)
	}
}

// FuzzServiceIsReadAsJSON: the reader of services gives the same result as encoding/json.
func FuzzServiceIsReadAsJSON(f *testing.F) {
	for _, v := range golden[[]vector](f, "services.json") {
		f.Add(v.Base64)
	}
	for _, v := range golden[[]decodeVector](f, "services_decode.json") {
		f.Add(v.bytes(f))
	}
	for _, text := range []string{
		`{"backends":{"::1":{"a":{"Protocol":"TCP","Port":80}},"::2":{"a":{"Protocol":"TCP","Port":80}},"::3":{ }}}`,
		`{"backends" : { "::1" : { "a" : { "Port" : 80 } , "b" : null } , "\u0031" : null , "x":{} } }`,
		`{"BACKENDS":{"a":{}},"backends":{"b":{}},"frontends":null,"labels":null,"zones":{"a":{"zone":"z"}},"zones":{"b":null}}`,
		`{"backends":{"a":{"b":{"protocol":"x"},"b":{"Port":1}},"a":{}},"labels":{"a":"b","a":"c","\ud800":"\""}}`,
		`{"backends":[],"labels":5}`, `{"backends":{"a":5}}`, `{"backends":{"a":{"b":5}}}`, `{"backends":{"a":{"b":{"Port":-1}}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := parseService(value)
		if tooLarge(err) {
			return
		}
		want := &Service{Frontends: map[string]Ports{}, Backends: map[string]Ports{}, Labels: map[string]string{}, Selector: map[string]string{}}
		wantErr := json.Unmarshal(value, want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error is %v, want %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if g, w := got.Encode(), want.Encode(); string(g) != string(w) {
			t.Fatalf("read as\n%s, want\n%s", g, w)
		}
		if !maps.Equal(got.Labels, want.Labels) || (got.Backends == nil) != (want.Backends == nil) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}
