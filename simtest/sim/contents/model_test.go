package contents

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func contentsOf(t testing.TB, c Cluster) map[string]string {
	t.Helper()
	m, err := New(c)
	must(t, err)
	return encodeModel(m)
}

func encodeModel(m *Model) map[string]string {
	out := map[string]string{}
	for o := range m.All() {
		out[o.Key] = string(o.Value)
	}
	return out
}

func TestSameSeedSameContents(t *testing.T) {
	t.Parallel()
	c := Default("cluster2", 2)
	other := c
	other.Seed = 2
	if diff := cmp.Diff(contentsOf(t, c), contentsOf(t, c)); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
	if cmp.Equal(contentsOf(t, c), contentsOf(t, other)) {
		t.Error("another seed gives the same contents")
	}
}

func TestSameSeedSameChanges(t *testing.T) {
	t.Parallel()
	a, _ := New(Default("cluster2", 2))
	b, _ := New(Default("cluster2", 2))
	for i := range 200 {
		if diff := cmp.Diff(a.Step(), b.Step()); diff != "" {
			t.Fatalf("change %d differs:\n%s", i, diff)
		}
	}
}

func TestSizesAreWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	c := Default("cluster2", 2)
	c.Nodes, c.Services, c.Backends, c.Identities, c.Addresses, c.ServiceExports = 9, 30, 6, 50, 400, true
	contents := contentsOf(t, c)
	want := map[wire.Resource]int{
		wire.Nodes: 9, wire.Services: 30, wire.EndpointSlices: 30, wire.ServiceExports: 30, wire.Identities: 50, wire.IPs: 400,
	}
	if diff := cmp.Diff(want, decodeAll(t, c, contents)); diff != "" {
		t.Error(diff)
	}
	if len(contents) != c.Keys() {
		t.Errorf("%d keys, %d announced", len(contents), c.Keys())
	}
	for _, s := range decodeServices(t, c, contents) {
		if len(s.Backends) != 6 {
			t.Errorf("%s/%s has %d backends", s.Namespace, s.Name, len(s.Backends))
		}
	}
}

func decodeServices(t testing.TB, c Cluster, contents map[string]string) map[string]*wire.Service {
	t.Helper()
	out := map[string]*wire.Service{}
	for key, value := range contents {
		if name, ok := strings.CutPrefix(key, wire.Services.Prefix(c.Name, false)); ok {
			s, err := wire.DecodeService(name, []byte(value), wire.Expect{Cluster: c.Name, ClusterID: c.ID})
			must(t, err)
			out[name] = s
		}
	}
	return out
}

func TestClustersShareSomeServicesButNoAddress(t *testing.T) {
	t.Parallel()
	owners := map[string]int{}
	addresses := map[string]string{}
	for id := uint32(1); id <= 4; id++ {
		c := Default("cluster"+string(rune('0'+id)), id)
		c.Services, c.Nodes = 20+int(id), 3*int(id) // the sizes make no difference
		contents := contentsOf(t, c)
		for name := range decodeServices(t, c, contents) {
			owners[name]++
		}
		for key := range contents {
			if ip, ok := strings.CutPrefix(key, wire.IPs.Prefix(c.Name, false)); ok {
				if other, ok := addresses[ip]; ok {
					t.Errorf("%s is in %s and in %s", ip, other, c.Name)
				}
				addresses[ip] = c.Name
			}
		}
	}
	kinds := map[int]int{}
	for _, n := range owners {
		kinds[n]++
	}
	if kinds[4] < 8 || kinds[2] < 8 || kinds[1] < 16 {
		t.Errorf("services by how many clusters have them: %v", kinds)
	}
}

// TestChangesKeepTheModelConsistent applies the operations of random models to
// a map, which must stay equal to the model.
func TestChangesKeepTheModelConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := Default("cluster2", 2)
		c.Nodes = rapid.IntRange(1, 5).Draw(t, "nodes")
		c.Identities = rapid.IntRange(1, 12).Draw(t, "identities")
		c.Services = rapid.IntRange(0, 15).Draw(t, "services")
		c.Backends = rapid.IntRange(0, 6).Draw(t, "backends")
		c.Addresses = rapid.IntRange(0, 60).Draw(t, "addresses")
		c.KeysPerLease = rapid.IntRange(1, 20).Draw(t, "keys per lease")
		c.ServiceExports = rapid.Bool().Draw(t, "exports")
		c.EndpointSlices = rapid.Bool().Draw(t, "slices")
		c.Seed = rapid.Uint64().Draw(t, "seed")
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		naive := encodeModel(m)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			for _, o := range m.Step() {
				if o.Deletes() {
					if _, ok := naive[o.Key]; !ok {
						t.Fatalf("%s is deleted but was not there", o.Key)
					}
					delete(naive, o.Key)
				} else {
					naive[o.Key] = string(o.Value)
				}
			}
		}
		if got := encodeModel(m); !maps.Equal(naive, got) {
			t.Fatalf("the model differs from its changes:\n%s", cmp.Diff(naive, got))
		}
		checkModel(t, m)
	})
}

func checkModel(t *rapid.T, m *Model) {
	perSlot := map[int32]int{}
	for o := range m.All() {
		perSlot[o.Slot]++
	}
	for slot, used := range m.Slots.used {
		if used != perSlot[int32(slot)] || used > m.Slots.limit {
			t.Fatalf("slot %d: %d keys taken, %d written, limit %d", slot, used, perSlot[int32(slot)], m.Slots.limit)
		}
	}
	live, seen := 0, map[netip.Addr]bool{}
	for i, p := range m.pods {
		if p.workload == gone {
			continue
		}
		live++
		ip := m.podIP(int32(i))
		if seen[ip] || !m.plan.podCIDR(int(p.node)).Contains(ip) || p.offset < reservedAddresses {
			t.Fatalf("pod %d has the address %s", i, ip)
		}
		seen[ip] = true
	}
	if live != m.live {
		t.Fatalf("%d pods live, %d counted", live, m.live)
	}
	for w := range m.workloads {
		for _, b := range m.workloads[w].backends {
			if p := m.pods[b]; !p.serves || int(p.workload) != w {
				t.Fatalf("workload %d has the backend %+v", w, p)
			}
		}
	}
}

func TestLongChurnStaysNearTheSizes(t *testing.T) {
	t.Parallel()
	c := Default("cluster2", 2)
	c.EndpointSlices = false // they take most of the time and add nothing here
	m, err := New(c)
	must(t, err)
	for range 20_000 {
		if len(m.Step()) == 0 {
			t.Fatal("a step changed nothing")
		}
		if m.live < c.Addresses*3/4 || m.live > c.Addresses*5/4 {
			t.Fatalf("%d pods, %d were asked for", m.live, c.Addresses)
		}
	}
	backends := 0
	for w := range m.workloads {
		backends += len(m.workloads[w].backends)
	}
	if want := c.Services * c.Backends; backends < want/2 || backends > want {
		t.Errorf("%d backends, %d were asked for", backends, want)
	}
	if s := m.Sample(); encodeModel(m)[wire.IPs.Prefix("", false)+s.Pod.String()] == "" {
		t.Errorf("the pod to look up, %s, is gone", s.Pod)
	}
}
