package random_test

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/random"
)

var narrow = random.Cluster{Name: "c2", ID: 2, MaxConnectedClusters: 255}

func TestTheSameSeedMakesTheSameObjects(t *testing.T) {
	t.Parallel()
	a, b := random.Objects(7, 200, narrow), random.Objects(7, 200, narrow)
	if !reflect.DeepEqual(a, b) {
		t.Error("they differ")
	}
	if reflect.DeepEqual(a, random.Objects(8, 200, narrow)) {
		t.Error("another seed makes the same objects")
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	const n = 10_000
	for _, kind := range model.Kinds() {
		for objects := range random.Chunks(1, n, n, kind, narrow) {
			if named := objects.Named()[kind]; len(named) != n {
				t.Errorf("%s: %d different names for %d objects", kind, len(named), n)
			}
		}
	}
}

func TestAnotherVersionHasTheSameName(t *testing.T) {
	t.Parallel()
	m := random.New(3, narrow)
	for i := range 100 {
		a, b := m.Service(i), m.Service(i)
		if a.Namespace != b.Namespace || a.Name != b.Name {
			t.Fatalf("service %d is %s/%s, then %s/%s", i, a.Namespace, a.Name, b.Namespace, b.Name)
		}
	}
	if a, b := m.Address(5), m.Address(5); a.Prefix != b.Prefix || reflect.DeepEqual(a, b) {
		t.Errorf("two versions of an address: %v and %v", a, b)
	}
}

func TestIdentitiesAreTheClusters(t *testing.T) {
	t.Parallel()
	wide := random.Cluster{Name: "c500", ID: 500, MaxConnectedClusters: 511}
	identities := random.Objects(1, 1000, wide).Identities
	least := slices.MinFunc(identities, func(a, b model.Identity) int { return int(a.ID) - int(b.ID) })
	most := slices.MaxFunc(identities, func(a, b model.Identity) int { return int(a.ID) - int(b.ID) })
	if least.ID != 500<<15 || most.ID != 501<<15-1 {
		t.Errorf("identities from %d to %d", least.ID, most.ID)
	}
}

// TestBoundsOccur: the random objects have the values for which they are made.
func TestBoundsOccur(t *testing.T) {
	t.Parallel()
	o := random.Objects(1, 2000, narrow)
	has := func(name string, ok bool) {
		if !ok {
			t.Errorf("does not occur: %s", name)
		}
	}
	for _, text := range []string{"0.0.0.0/0", "::/0", "0.0.0.0/31", "::/127"} {
		has(text, slices.ContainsFunc(o.Addresses, func(a model.Address) bool { return a.Prefix == netip.MustParsePrefix(text) }))
	}
	full := map[netip.Prefix][2]int{}
	for _, a := range o.Addresses {
		n := full[a.Prefix]
		n[map[bool]int{true: 1}[a.Host]]++
		full[a.Prefix] = n
	}
	has("an address and a prefix of full length of it",
		slices.Contains(slices.Collect(maps.Values(full)), [2]int{1, 1}))
	for _, n := range []int{0, 1, 500} {
		has("number of backends", slices.ContainsFunc(o.Services, func(s model.Service) bool { return len(s.Backends) == n }))
	}
	has("dual stack", slices.ContainsFunc(o.Services, dualStack))
	has("headless", slices.ContainsFunc(o.Services, func(s model.Service) bool { return len(s.Frontends) == 0 && len(s.Backends) > 0 }))
	has("a hundred labels", slices.ContainsFunc(o.Nodes, func(n model.Node) bool { return len(n.Labels) >= 100 }))
	has("an annotation of 64 KiB", slices.ContainsFunc(o.Nodes, func(n model.Node) bool { return len(n.Annotations["huge"]) >= 64<<10 }))
	has("a node with nothing", slices.ContainsFunc(o.Nodes, func(n model.Node) bool {
		return len(n.IPAddresses) == 0 && !n.IPv4AllocCIDR.IsValid() && !n.IPv6AllocCIDR.IsValid() && !n.IPv4HealthIP.IsValid()
	}))
	has("the longest name", slices.ContainsFunc(o.Nodes, func(n model.Node) bool { return len(n.Name) == 253 }))
	has("hints for no zone", slices.ContainsFunc(o.EndpointSlices, func(s model.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e model.Endpoint) bool { return e.Hints != nil && len(e.Hints.ForZones) == 0 })
	}))
	has("a hundred addresses", slices.ContainsFunc(o.EndpointSlices, func(s model.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e model.Endpoint) bool { return len(e.Addresses) == 100 })
	}))
	has("an identity with an equals sign in a value", slices.ContainsFunc(o.Identities, func(i model.Identity) bool {
		return slices.ContainsFunc(i.Labels, func(l model.Label) bool { return strings.Contains(l.Value, "a=b") })
	}))
}

func dualStack(s model.Service) bool {
	v4, v6 := false, false
	for addr := range s.Backends {
		v4, v6 = v4 || addr.Is4(), v6 || addr.Is6()
	}
	return v4 && v6
}
