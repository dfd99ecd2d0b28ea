package services

import (
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// FuzzFromWire: whatever a remote writes and the decoder accepts becomes a
// service with sorted, distinct backends, always the same for the same text.
func FuzzFromWire(f *testing.F) {
	f.Add([]byte(`{"cluster":"c","namespace":"ns","name":"n","clusterID":2,"shared":true,"backends":{"10.0.0.1":{"a":{"Protocol":"TCP","Port":1},"b":null},"::ffff:10.0.0.1":{"":{"Port":1}}},"zones":{"10.0.0.1":{"zone":"z"}},"hostnames":{"x":"y"}}`))
	f.Add([]byte(`{"cluster":"c","namespace":"ns","name":"n","clusterID":2,"backends":{"fd00::1":null,"FD00::1":{},"fd00:0::1":{"x":{"Protocol":"\u0000"}}}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		w, err := wire.DecodeService("ns/n", value, wire.Expect{Cluster: "c", ClusterID: 2, LocalID: 1})
		if err != nil {
			return
		}
		s := FromWire(w, wire.SourceClusterMesh)
		for i, b := range s.Backends {
			if !b.IP.IsValid() || b.IP.Is4In6() || i > 0 && !s.Backends[i-1].IP.Less(b.IP) {
				t.Errorf("backend %d is %v", i, b.IP)
			}
			if again := slices.Compact(sortPorts(slices.Clone(b.Ports))); !slices.Equal(again, b.Ports) {
				t.Errorf("ports %v of %s are not sorted or not distinct", b.Ports, b.IP)
			}
		}
		if !s.Equal(FromWire(w, wire.SourceClusterMesh)) {
			t.Error("not always the same")
		}
	})
}
