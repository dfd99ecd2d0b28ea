package backends_test

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// TestCandidatesAreTheChoice: the candidates of the lowest rank, each address once, are the backends that connections
// go to.
func TestCandidatesAreTheChoice(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		g := services.Merge(randomParts(rng))
		from := backends.Asker{Zone: "a", Node: "n"}
		for _, port := range []backends.Port{{}, backends.NamedPort("http", "TCP"), backends.ParsePort("8080"), backends.NamedPort("none", "TCP")} {
			got, want := nowOf(g, port, from), make(map[netip.Addr]string)
			for _, b := range backends.Choose(g, port, from).Now() {
				want[b.IP] = b.Cluster
			}
			if len(got) != len(want) {
				t.Fatalf("seed %d: %s: %v, want %v", seed, texts(g), got, want)
			}
			for ip, cluster := range want {
				if got[ip] != cluster {
					t.Fatalf("seed %d: %s: %v, want %v", seed, texts(g), got, want)
				}
			}
		}
		if g == nil {
			continue
		}
		for _, p := range g.Parts {
			has := false
			for part := range backends.Usable(g) {
				has = has || part == p
			}
			usable := slices.ContainsFunc(p.Backends, services.Backend.Usable)
			if has != (usable && backends.InUse(g, p)) {
				t.Fatalf("seed %d: %s: %s is in use: %t", seed, texts(g), p.Cluster, has)
			}
		}
	}
}

func nowOf(g *services.Global, port backends.Port, from backends.Asker) map[netip.Addr]string {
	all := make(map[netip.Addr]string)
	for _, terminating := range []bool{false, true} {
		least := math.MaxInt
		for c := range backends.Candidates(g, port, from) {
			if c.Terminating() != terminating || c.Rank > least {
				continue
			}
			if c.Rank < least {
				least = c.Rank
				clear(all)
			}
			if _, has := all[c.IP]; !has {
				all[c.IP] = c.Part.Cluster
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}
