package services

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var netipTypes = cmpopts.EquateComparable(netip.Addr{})

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// goldenServices returns the decoded vectors, by key without the state prefix.
func goldenServices(t *testing.T) map[string]*Service {
	t.Helper()
	var vectors []struct{ Key, Value string }
	readGolden(t, "services.json", &vectors)
	out := make(map[string]*Service)
	for _, v := range vectors {
		key := strings.TrimPrefix(v.Key, "cilium/state/services/v1/")
		cluster, name, _ := strings.Cut(key, "/")
		id := uint32(2)
		if strings.HasPrefix(cluster, "ccc") {
			id = 255
		}
		s, err := wire.DecodeService(name, []byte(v.Value), wire.Expect{Cluster: cluster, ClusterID: id, LocalID: 1})
		if r, refused := errors.AsType[*wire.RejectError](err); refused && r.Reason == wire.ReasonName {
			continue // it has a label that Kubernetes does not allow
		}
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		out[key] = FromWire(s, wire.SourceClusterMesh)
	}
	return out
}

func readGolden(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/golden/" + file)
	waittest.Must(t, err)
	waittest.Must(t, json.Unmarshal(data, into))
}

func TestGoldenServicesAreConverted(t *testing.T) {
	t.Parallel()
	got := goldenServices(t)
	want := map[string][]Backend{
		"cluster2/default/rebel-base": {
			{IP: ip("10.2.0.11"), Ports: []Port{{"http", "TCP", 8080}}},
			{IP: ip("10.2.0.12"), Ports: []Port{{"http", "TCP", 8080}}},
		},
		"cluster2/default/unnamed-port": {{IP: ip("10.2.0.13"), Ports: []Port{{"", "TCP", 80}}}},
		"cluster2/prod/v6":              {{IP: ip("fd02::11"), Ports: []Port{{"dns-tcp", "TCP", 53}, {"dns", "UDP", 53}}}},
		"cluster2/prod/dual": {
			{IP: ip("10.2.0.14"), Ports: []Port{{"sctp", "SCTP", 9000}}},
			{IP: ip("fd02::14"), Ports: []Port{{"sctp", "SCTP", 9000}}},
		},
		"cluster2/prod/headless": {{IP: ip("10.2.0.15"), Ports: []Port{{"db", "TCP", 5432}}, Hostname: "db-0"}},
		"cluster2/prod/zones": {
			{IP: ip("10.2.0.16"), Ports: []Port{{"http", "TCP", 80}}, Zone: "eu-a"},
			{IP: ip("10.2.0.17"), Ports: []Port{{"http", "TCP", 80}}, Zone: "eu-b"},
		},
		"cluster2/prod/nobackends": nil,
		"cluster2/prod/unshared":   nil,
		"cluster2/prod/nilmaps":    nil,
		"cluster2/prod/multiport":  {{IP: ip("10.2.0.19"), Ports: []Port{{"a", "TCP", 8080}, {"b", "TCP", 8080}}}},
		"cluster2/prod/nilport":    {{IP: ip("10.2.0.20")}},
	}
	for key, backends := range want {
		s := got[key]
		if diff := cmp.Diff(backends, s.Backends, netipTypes); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
		if s.Key() != key || s.ClusterID != 2 || s.Source != wire.SourceClusterMesh {
			t.Errorf("%s became %+v", key, s)
		}
		if s.Shared == (key == "cluster2/prod/unshared") {
			t.Errorf("%s: shared is %v", key, s.Shared)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d vectors, %d expectations", len(got), len(want))
	}
	rebels := got["cluster2/default/rebel-base"]
	if rebels.Labels["app"] != "rebel" || !rebels.IncludeExternal || got["cluster2/prod/v6"].Labels != nil {
		t.Errorf("labels or includeExternal are wrong: %+v", rebels)
	}
	if unsafe.SliceData(rebels.Backends[0].Ports) != unsafe.SliceData(rebels.Backends[1].Ports) {
		t.Error("equal ports are held twice")
	}
}

func TestFromWireBackends(t *testing.T) {
	t.Parallel()
	tcp := func(port uint16) *wire.L4 { return &wire.L4{Protocol: "TCP", Port: port} }
	tests := map[string]struct {
		in   wire.Service
		want []Backend
	}{
		"one address in two spellings is one backend with the ports of both": {
			wire.Service{
				Backends: map[string]wire.Ports{
					"::ffff:192.0.2.1": {"http": tcp(80)},
					"192.0.2.1":        {"http": tcp(80), "admin": tcp(8080)},
				},
				Hostnames: map[string]string{"::ffff:192.0.2.1": "web-0"},
			},
			[]Backend{{IP: ip("192.0.2.1"), Ports: []Port{{"http", "TCP", 80}, {"admin", "TCP", 8080}}, Hostname: "web-0"}},
		},
		"an unshortened IPv6 address is the same": {
			wire.Service{Backends: map[string]wire.Ports{"fd00:0::1": {"a": tcp(1)}, "FD00::1": {"b": tcp(1)}}},
			[]Backend{{IP: ip("fd00::1"), Ports: []Port{{"a", "TCP", 1}, {"b", "TCP", 1}}}},
		},
		"addresses are sorted as addresses": {
			wire.Service{Backends: map[string]wire.Ports{"192.0.2.10": nil, "192.0.2.9": nil, "fd00::1": nil}},
			[]Backend{{IP: ip("192.0.2.9")}, {IP: ip("192.0.2.10")}, {IP: ip("fd00::1")}},
		},
		"a null port is left out": {
			wire.Service{Backends: map[string]wire.Ports{"192.0.2.1": {"gone": nil, "http": tcp(80)}}},
			[]Backend{{IP: ip("192.0.2.1"), Ports: []Port{{"http", "TCP", 80}}}},
		},
		"an unknown protocol is kept as written": {
			wire.Service{Backends: map[string]wire.Ports{"192.0.2.1": {"x": {Protocol: "WHAT", Port: 1}}}},
			[]Backend{{IP: ip("192.0.2.1"), Ports: []Port{{"x", "WHAT", 1}}}},
		},
		"a zone without backend does nothing": {
			wire.Service{Zones: map[string]wire.Zone{"192.0.2.1": {Zone: "a"}}},
			nil,
		},
		"what is no address is left out": {
			wire.Service{Backends: map[string]wire.Ports{"x": {"http": tcp(80)}}},
			nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := FromWire(&tc.in, wire.SourceClusterMesh).Backends
			if diff := cmp.Diff(tc.want, got, netipTypes, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFromWireWithoutMuchInCommon uses more values than the pool of shared values keeps.
func TestFromWireWithoutMuchInCommon(t *testing.T) {
	t.Parallel()
	w := wire.Service{Backends: map[string]wire.Ports{}, Zones: map[string]wire.Zone{}}
	for i := range byte(3 * poolSize) {
		a := netip.AddrFrom4([4]byte{10, 0, 0, i})
		w.Backends[a.String()] = wire.Ports{"p": {Protocol: "TCP", Port: uint16(i)}}
		w.Zones[a.String()] = wire.Zone{Zone: a.String()}
	}
	for i, b := range FromWire(&w, wire.SourceClusterMesh).Backends {
		if len(b.Ports) != 1 || int(b.Ports[0].Port) != i || b.Zone != b.IP.String() {
			t.Errorf("backend %d is %+v", i, b)
		}
	}
}

func TestBackendByAddress(t *testing.T) {
	t.Parallel()
	s := goldenServices(t)["cluster2/default/rebel-base"]
	for text, want := range map[string]bool{"10.2.0.12": true, "::ffff:10.2.0.11": true, "10.2.0.13": false, "fd00::1": false} {
		if b, found := s.Backend(ip(text)); found != want || found && b.IP != ip(text).Unmap() {
			t.Errorf("%s: %v, %v", text, b, found)
		}
	}
}

// TestEqual: a change of any field makes two services unequal.
func TestEqual(t *testing.T) {
	t.Parallel()
	base := func() *Service {
		s := *goldenServices(t)["cluster2/prod/zones"]
		s.Labels = map[string]string{"a": "b"}
		return &s
	}
	if !base().Equal(base()) {
		t.Error("two equal services differ")
	}
	changes := map[string]func(*Service){
		"cluster":          func(s *Service) { s.Cluster = "x" },
		"cluster ID":       func(s *Service) { s.ClusterID++ },
		"namespace":        func(s *Service) { s.Namespace = "x" },
		"name":             func(s *Service) { s.Name = "x" },
		"shared":           func(s *Service) { s.Shared = false },
		"includeExternal":  func(s *Service) { s.IncludeExternal = false },
		"source":           func(s *Service) { s.Source = wire.SourceLocal },
		"affinity":         func(s *Service) { s.Affinity = wire.AffinityLocal },
		"slices alone":     func(s *Service) { s.Sliced = true },
		"use":              func(s *Service) { s.Use = Withheld },
		"labels":           func(s *Service) { s.Labels = nil },
		"backends":         func(s *Service) { s.Backends = s.Backends[1:] },
		"backend address":  func(s *Service) { s.Backends[0].IP = ip("10.2.0.1") },
		"backend hostname": func(s *Service) { s.Backends[0].Hostname = "x" },
		"backend zone":     func(s *Service) { s.Backends[0].Zone = "x" },
		"backend node":     func(s *Service) { s.Backends[0].Node = "x" },
		"conditions":       func(s *Service) { s.Backends[0].Conditions = IsTerminating },
		"backend port":     func(s *Service) { s.Backends[0].Ports = []Port{{"http", "TCP", 81}} },
	}
	for name, change := range changes {
		s := base()
		s.Backends = slices.Clone(s.Backends)
		change(s)
		if s.Equal(base()) || base().Equal(s) {
			t.Errorf("a change of the %s was not noticed", name)
		}
	}
}
