package services

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// encoded is a service of the usual shape, as it comes from the wire.
func encoded(cluster, id, i, backends int) (name string, value []byte) {
	w := wire.Service{
		Cluster: fmt.Sprintf("cluster%d", cluster), ClusterID: uint32(id),
		Namespace: fmt.Sprintf("namespace-%03d", i%100), Name: fmt.Sprintf("service-%06d", i),
		Frontends: map[string]wire.Ports{}, Backends: map[string]wire.Ports{}, Zones: map[string]wire.Zone{},
		Labels: map[string]string{"app": "web"}, Shared: true, IncludeExternal: true,
	}
	for b := range backends {
		a := netip.AddrFrom4([4]byte{10, byte(cluster), byte(i), byte(b)}).String()
		w.Backends[a] = wire.Ports{"http": {Protocol: "TCP", Port: 8080}, "metrics": {Protocol: "TCP", Port: 9090}}
		w.Zones[a] = wire.Zone{Zone: fmt.Sprintf("eu-%d", b%3)}
	}
	return w.Namespace + "/" + w.Name, w.Encode()
}

func decoded(b *testing.B, cluster, size, backends int) []change {
	batch := make([]change, size)
	for i := range batch {
		name, value := encoded(cluster, cluster, i, backends)
		w, err := wire.DecodeService(name, value, wire.Expect{Cluster: fmt.Sprintf("cluster%d", cluster), ClusterID: uint32(cluster), LocalID: 255})
		if err != nil {
			b.Fatal(err)
		}
		batch[i] = change{Name: name, New: FromWire(w, wire.SourceClusterMesh)}
	}
	return batch
}

// decodedSlices are the slices of the same services: one for each, with every
// backend on one of 100 nodes.
func decodedSlices(b *testing.B, cluster, size, backends int) []sliceChange {
	encoder := wire.NewSliceEncoder()
	defer encoder.Close()
	batch := make([]sliceChange, size)
	for i := range batch {
		w := wire.EndpointSlice{
			Cluster: fmt.Sprintf("cluster%d", cluster), ClusterID: uint32(cluster), AddressType: wire.AddressTypeIPv4,
			Namespace: fmt.Sprintf("namespace-%03d", i%100), Name: fmt.Sprintf("service-%06d-abcde", i),
			Labels: map[string]string{
				wire.LabelServiceName: fmt.Sprintf("service-%06d", i), "app": "web",
				"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
			},
			Ports: []wire.EndpointPort{{Name: ptr("http"), Port: ptr[int32](8080)}, {Name: ptr("metrics"), Port: ptr[int32](9090)}},
		}
		for e := range backends {
			w.Endpoints = append(w.Endpoints, wire.Endpoint{
				Addresses:  []string{netip.AddrFrom4([4]byte{10, byte(cluster), byte(i), byte(e)}).String()},
				Conditions: conditions("ready", "serving", "not terminating"),
				NodeName:   ptr(fmt.Sprintf("cluster%d-node-%03d.example.org", cluster, (i+e)%100)), Zone: ptr(fmt.Sprintf("eu-%d", e%3)),
			})
		}
		d, err := wire.DecodeEndpointSlice(w.Namespace+"/"+w.Name, encoder.Encode(&w), wire.Expect{Cluster: w.Cluster, ClusterID: w.ClusterID, LocalID: 255})
		if err != nil {
			b.Fatal(err)
		}
		batch[i] = sliceChange{New: SliceFromWire(d, wire.SourceClusterMesh)}
	}
	return batch
}

// BenchmarkApply applies the services of 5 clusters, 5,000 each, in the ways in which a
// cluster may export them. With names of their own each makes a global service; with
// common names there is one for all. The bytes include the objects and the tables.
func BenchmarkApply(b *testing.B) {
	const clusters, size = 5, 5000
	for _, c := range []struct {
		name            string
		entries, slices bool
		backends        int
		common          bool
	}{
		{"entries", true, false, 5, false},
		{"slices", false, true, 5, false},
		{"both", true, true, 5, false},
		{"empty", true, false, 0, false},
		{"common", true, false, 10, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			var bytes float64
			for b.Loop() {
				b.StopTimer()
				_, s := newServices(b)
				before := heap()
				for cluster := 1; cluster <= clusters; cluster++ {
					var entries []change
					var slices []sliceChange
					if c.entries {
						entries = decoded(b, cluster, size, c.backends)
					}
					if c.slices {
						slices = decodedSlices(b, cluster, size, c.backends)
					}
					for i := range entries {
						if !c.common {
							entries[i].New.Name += entries[i].New.Cluster
						}
					}
					for i := range slices {
						slices[i].New.Service += slices[i].New.Cluster
					}
					b.StartTimer()
					s.Apply(entries)
					s.ApplySlices(slices)
					b.StopTimer()
				}
				bytes = float64(heap()-before) / (clusters * size)
				runtime.KeepAlive(s)
				b.StartTimer()
			}
			b.ReportMetric(bytes, "B/service")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*clusters*size), "ns/service")
		})
	}
}

func BenchmarkSliceFromWire(b *testing.B) {
	w := wireSlice()
	for i := range 9 {
		w.Endpoints = append(w.Endpoints, wire.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.1.%d", i)}, NodeName: ptr(fmt.Sprint("node-", i)), Zone: ptr("eu-1"),
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		SliceFromWire(w, wire.SourceClusterMesh)
	}
}

func BenchmarkFromWire(b *testing.B) {
	name, value := encoded(2, 2, 0, 10)
	w, err := wire.DecodeService(name, value, wire.Expect{Cluster: "cluster2", ClusterID: 2, LocalID: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		FromWire(w, wire.SourceClusterMesh)
	}
}

// BenchmarkOneOfMany changes one backend of a service that 254 clusters have.
func BenchmarkOneOfMany(b *testing.B) {
	_, s := newServices(b)
	var batch []change
	for c := range 254 {
		batch = append(batch, change{New: svc(fmt.Sprintf("cluster%d", c), true, "10.0.0.1")})
	}
	s.Apply(batch)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Apply([]change{{New: svc("cluster7", true, fmt.Sprintf("10.0.0.%d", 1+i%2))}})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
