package endpointslices

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestChurn: after any changes of backends, when each plan is carried out the slices hold the choice, once, in slices
// that are not too large; endpoints that did not change their ports are where they were; and nothing is left to do.
func TestChurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := churn{server: newServer(), backends: make(map[string]map[netip.Addr]services.Backend)}
		w.affinity = rapid.SampledFrom([]wire.Affinity{"", wire.AffinityLocal, wire.AffinityRemote}).Draw(t, "affinity")
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			w.change(t)
			before := w.places()
			g := w.global()
			changes := Plan(Input{Service: serviceOf("web", dual), Global: g, Held: w.held()})
			w.carryOut(t, changes.All)
			w.check(t, g, before)
			if again := Plan(Input{Service: serviceOf("web", dual), Global: g, Held: w.held()}); len(again.All) > 0 {
				t.Fatalf("%d changes are left", len(again.All))
			}
		}
	})
}

type churn struct {
	*server
	affinity wire.Affinity
	local    bool // the own cluster has a backend
	backends map[string]map[netip.Addr]services.Backend
}

// change lets backends of one cluster come, go and become other ones, many at once.
func (w *churn) change(t *rapid.T) {
	w.local = rapid.Bool().Draw(t, "local")
	cluster := rapid.SampledFrom([]string{"north", "south", "west"}).Draw(t, "cluster")
	if rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
		delete(w.backends, cluster)
		return
	}
	if w.backends[cluster] == nil {
		w.backends[cluster] = make(map[netip.Addr]services.Backend)
	}
	first, n := rapid.IntRange(0, 300).Draw(t, "first"), rapid.IntRange(0, 250).Draw(t, "n")
	goes := rapid.Bool().Draw(t, "goes")
	ports := rapid.SampledFrom([][]services.Port{nil, {http(80)}, {http(81)}}).Draw(t, "ports")
	state := rapid.SampledFrom([]services.Conditions{0, services.IsTerminating, services.NotReady, services.NotReady | services.NotServing}).Draw(t, "state")
	for i := first; i < first+n; i++ {
		ip := netip.AddrFrom4([4]byte{10, byte(len(cluster)), byte(i >> 8), byte(i)})
		if i%3 == 0 {
			ip = netip.AddrFrom16([16]byte{0xfd, byte(len(cluster)), 14: byte(i >> 8), 15: byte(i)})
		}
		if goes {
			delete(w.backends[cluster], ip)
		} else {
			w.backends[cluster][ip] = services.Backend{IP: ip, Ports: ports, Conditions: state}
		}
	}
}

func (w *churn) global() *services.Global {
	own := ownPart("web", w.affinity)
	if w.local {
		own.Backends = []services.Backend{backend("192.0.2.1", http(80))}
	}
	parts := []*services.Service{own}
	for cluster, all := range w.backends {
		parts = append(parts, remotePart(cluster, "web", slices.Collect(maps.Values(all))...))
	}
	return services.Merge(parts)
}

// places says of each address where it is, with which ports.
func (w *churn) places() map[string]string {
	where := make(map[string]string)
	for name, slice := range w.slices {
		for _, e := range slice.Endpoints {
			where[e.Addresses[0]+" "+keyOf(slice.Ports)+" "+slice.Labels[LabelCluster]] = name
		}
	}
	return where
}

func (w *churn) check(t *rapid.T, g *services.Global, before map[string]string) {
	// The naive model: each address of the choice with all that is said of it.
	want, got := make(map[string]string), make(map[string]string)
	first := true
	for _, group := range backends.Choose(g, backends.Port{}, backends.Asker{}).Groups {
		note := func(all []backends.Backend, conditions string) {
			for _, b := range all {
				if !b.Local {
					want[b.IP.String()] = fmt.Sprint(b.Cluster, " ", keyOf(portsOf(b.Ports)), " ", conditions)
				}
			}
		}
		ready := "false true false"
		if first {
			ready = "true true false"
		}
		note(group.Backends, ready)
		note(group.Draining, "false true true")
		first = first && len(group.Backends) == 0
	}
	places := make(map[string]int)
	for _, slice := range w.slices {
		at := slice.Labels[LabelCluster] + " " + string(slice.AddressType)
		places[at]++
		if len(slice.Endpoints) > MaxEndpoints {
			t.Fatalf("%d endpoints", len(slice.Endpoints))
		}
		for _, e := range slice.Endpoints {
			a := e.Addresses[0]
			if got[a] != "" {
				t.Fatalf("%s is there twice", a)
			}
			got[a] = fmt.Sprint(slice.Labels[LabelCluster], " ", keyOf(slice.Ports), " ", *e.Conditions.Ready, " ", *e.Conditions.Serving, " ", *e.Conditions.Terminating)
		}
	}
	if !maps.Equal(want, got) {
		t.Fatalf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	for _, slice := range w.slices {
		if at := slice.Labels[LabelCluster] + " " + string(slice.AddressType); len(slice.Endpoints) == 0 && places[at] > 1 {
			t.Fatalf("%s has an empty slice beside others", at)
		}
	}
	if len(places) != 2*len(w.backends) {
		t.Fatalf("slices of %v, clusters %d", places, len(w.backends))
	}
	after := w.places()
	for what, name := range before {
		if now, still := after[what]; still && now != name {
			t.Fatalf("%s moved from %s to %s", what, name, now)
		}
	}
}
