package summary_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/summary"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestSharing(t *testing.T) {
	t.Parallel()
	own := func(p *services.Service) { p.Source = wire.SourceLocal }
	unshared := func(p *services.Service) { p.Shared = false }
	var all []*services.Global
	for i := range 70 { // more than a word of bits
		all = append(all, service(fmt.Sprint("both-", i), part("cairo", 1, nil), part("lima", 0, nil)))
	}
	all = append(all,
		service("all", part("cairo", 1, nil), part("home", 1, own), part("lima", 1, nil), part("tokyo", 1, unshared)),
		service("late", part("lima", 1, nil), part("home", 1, own)),
		service("alone", part("oslo", 3, nil)),
	)
	whole := []api.Sharer{
		{Cluster: "cairo", Services: 71, With: map[string]int{"home": 1, "lima": 71}},
		{Cluster: "home", Services: 2, With: map[string]int{"cairo": 1, "lima": 2}},
		{Cluster: "lima", Services: 72, With: map[string]int{"cairo": 71, "home": 2}},
		{Cluster: "oslo", Services: 1, With: map[string]int{}},
	}
	for of, want := range map[string][]api.Sharer{"": whole, "lima": whole[2:3], "oslo": whole[3:], "tokyo": {}, "nope": {}} {
		got := summary.SharingOf(of, slices.Values(all), []string{"tokyo"})
		if diff := cmp.Diff(api.Sharing{Items: want, Unconfirmed: []string{"tokyo"}}, got); diff != "" {
			t.Errorf("of %q: %s", of, diff)
		}
	}
}

// BenchmarkSharing is of 254 clusters that all share the same 10,000 services.
func BenchmarkSharing(b *testing.B) {
	var all []*services.Global
	for i := range 10_000 {
		parts := make([]*services.Service, 254)
		for c := range parts {
			parts[c] = part(fmt.Sprintf("cluster%03d", c), 0, nil)
		}
		all = append(all, service(fmt.Sprint("web-", i), parts...))
	}
	for b.Loop() {
		summary.SharingOf("", slices.Values(all), nil)
	}
}
