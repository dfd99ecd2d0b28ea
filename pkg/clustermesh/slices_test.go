package clustermesh

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// slice writes an endpoint slice of service i with one address in a zone.
func (r *remote) slice(i int, zone string) {
	ready, name, port := true, "http", int32(8001)
	s := wire.EndpointSlice{
		Cluster: r.name, ClusterID: r.id, Namespace: "ns", Name: fmt.Sprint("svc", i, "-abc"),
		Labels: map[string]string{"kubernetes.io/service-name": fmt.Sprint("svc", i)}, AddressType: wire.AddressTypeIPv4,
		Endpoints: []wire.Endpoint{{Addresses: []string{r.addr(i).String()}, Zone: &zone, Conditions: wire.EndpointConditions{Ready: &ready}}},
		Ports:     []wire.EndpointPort{{Name: &name, Port: &port}},
	}
	r.put(r.key(wire.EndpointSlices, "ns/"+s.Name), s.Encode())
}

// backends returns the backends in use of the global service i, with their zones.
func (w *world) backends(i int) string {
	g, _, found := w.view.Services.Global().Get(w.db.ReadTxn(), services.GlobalByName("ns", fmt.Sprint("svc", i)))
	if !found {
		return "no service"
	}
	var all []string
	for part, b := range g.Backends() {
		all = append(all, strings.TrimSpace(fmt.Sprint(part.Cluster, " ", b.IP, " ", b.Zone)))
	}
	return strings.Join(all, ", ")
}

func (w *world) backendsAre(i int, want string) {
	w.t.Helper()
	w.until("the backends "+want, func() bool { return w.backends(i) == want }, func() string { return w.backends(i) })
}

func TestServicesInTwoFormats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c1 := w.remote("c1", 1)
	mode := func(m string) {
		c1.configure(wire.Capabilities{MaxConnectedClusters: 255, EndpointSlicesExportMode: m})
	}
	c1.slice(1, "zone-a")
	c1.join()
	w.backendsAre(1, "c1 10.1.0.1") // not exported, so not read
	mode(wire.EndpointSlicesBoth)
	w.backendsAre(1, "c1 10.1.0.1 zone-a")
	w.inState("c1", remotecluster.Ready)
	c1.put(c1.key(wire.EndpointSlices, "ns/broken"), []byte("no slice"))
	w.until("the slices to be counted", func() bool {
		st, _ := w.status("c1")
		s := st.Families[wire.EndpointSlices]
		return s.Count == 1 && s.Rejected == 1 && s.Exported
	})
	mode(wire.EndpointSlicesOnly)
	w.backendsAre(2, "no service")
	w.backendsAre(1, "c1 10.1.0.1 zone-a")
	w.inState("c1", remotecluster.Ready)
	mode(wire.EndpointSlicesServicesOnly)
	w.backendsAre(1, "c1 10.1.0.1")
	w.inState("c1", remotecluster.Ready)
	c1.converges()
	txn := w.db.ReadTxn()
	for s := range w.view.Services.Slices().All(txn) {
		t.Errorf("slice %s is left", s.Key())
	}
}

func TestTheCacheTTL(t *testing.T) {
	const ttl = time.Hour
	onAClock(t, func(p *Params) { p.CacheTTL = ttl }, func(t *testing.T, w *world, c1, _, _ *remote) {
		before := c1.inView()
		c1.goes()
		gone := time.Now()
		w.backendsAre(1, "c2 10.2.0.1, c3 10.3.0.1")
		if after := time.Since(gone); after < ttl-time.Minute || after > ttl+time.Minute {
			t.Errorf("its backends are out of use after %s, want %s", after, ttl)
		}
		w.until("the cluster to say so", func() bool {
			st, _ := w.status("c1")
			return st.State == remotecluster.Degraded && strings.Contains(st.Message, "--clustermesh-cache-ttl")
		})
		if now := c1.inView(); !maps.Equal(before, now) {
			t.Errorf("%d of %d objects are left: only the backends may be taken out of use", len(now), len(before))
		}
		c1.returns()
		w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
		w.inState("c1", remotecluster.Ready)
		if st, _ := w.status("c1"); st.Revocations != 1 {
			t.Errorf("%d revocations", st.Revocations)
		}
		for _, other := range []string{"c2", "c3"} {
			if st, _ := w.status(other); st.Revocations != 0 || st.Failures != 0 {
				t.Errorf("%s: %d revocations, %d failures", other, st.Revocations, st.Failures)
			}
		}
	})
}
