package services

import (
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// FuzzFromWire: every value that the decoder accepts becomes a service with sorted, distinct backends. The same text
// always gives the same service.
func FuzzFromWire(f *testing.F) {
	f.Add([]byte(`{"cluster":"c","namespace":"ns","name":"n","clusterID":2,"shared":true,"backends":{"10.0.0.1":{"a":{"Protocol":"TCP","Port":1},"b":null},"::ffff:10.0.0.1":{"":{"Port":1}}},"zones":{"10.0.0.1":{"zone":"z"}},"hostnames":{"x":"y"}}`))
	f.Add([]byte(`{"cluster":"c","namespace":"ns","name":"n","clusterID":2,"backends":{"fd00::1":null,"FD00::1":{},"fd00:0::1":{"x":{"Protocol":"\u0000"}}}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		w, err := wire.DecodeService("ns/n", value, wire.Expect{Cluster: "c", ClusterID: 2, LocalID: 1})
		if err != nil {
			return
		}
		s := FromWire(w, wire.SourceClusterMesh)
		checkBackends(t, s.Backends)
		if !s.Equal(FromWire(w, wire.SourceClusterMesh)) {
			t.Error("not always the same")
		}
	})
}

// FuzzSliceFromWire: the same for endpoint slices, and for a service with the fuzzed addresses in addition to its own.
func FuzzSliceFromWire(f *testing.F) {
	add := func(s *wire.EndpointSlice) {
		s.Cluster, s.ClusterID, s.Namespace, s.Name = "c", 2, "ns", "n"
		f.Add(s.Encode())
	}
	add(wireSlice())
	add(&wire.EndpointSlice{AddressType: wire.AddressTypeIPv6, Endpoints: []wire.Endpoint{
		{Addresses: []string{"::ffff:10.0.0.1", "fd00::1"}, Conditions: conditions("not ready")},
		{Addresses: []string{"FD00::1"}, Conditions: conditions("serving", "terminating")},
	}})
	f.Fuzz(func(t *testing.T, value []byte) {
		w, err := wire.DecodeEndpointSlice("ns/n", value, wire.Expect{Cluster: "c", ClusterID: 2, LocalID: 1})
		if err != nil {
			return
		}
		s := SliceFromWire(w, wire.SourceClusterMesh)
		if !s.Equal(SliceFromWire(w, wire.SourceClusterMesh)) {
			t.Error("not always the same")
		}
		all := slices.Collect(s.Endpoints())
		checkBackends(t, all)
		alone := part(nil, []*Slice{s}, Full)
		checkBackends(t, alone.Backends)
		for _, b := range all {
			if _, listed := alone.Backend(b.IP); listed != b.Usable() {
				t.Errorf("%s is usable: %v, and a backend: %v", b.IP, b.Usable(), listed)
			}
		}
		entry := &Service{Cluster: "c", Shared: true, Backends: all}
		if beside := part(entry, []*Slice{s}, Full); !slices.EqualFunc(beside.Backends, all, Backend.Equal) {
			t.Errorf("beside an entry that says the same: %v, want %v", beside.Backends, all)
		}
	})
}

func checkBackends(t *testing.T, backends []Backend) {
	t.Helper()
	for i, b := range backends {
		if !b.IP.IsValid() || b.IP.Is4In6() || i > 0 && !backends[i-1].IP.Less(b.IP) {
			t.Errorf("backend %d is %v", i, b.IP)
		}
		if again := slices.Compact(sortPorts(slices.Clone(b.Ports))); !slices.Equal(again, b.Ports) {
			t.Errorf("ports %v of %s are not sorted or not distinct", b.Ports, b.IP)
		}
	}
}
