package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// clusters is the number of clusters.
const clusters = 4

// step is one event of one cluster. Its details depend on do and n only.
type step struct {
	cluster int    // from 0
	do      string // an operation, a fault, or "heal"
	n       uint64 // decides the details
}

const heal = "heal"

func (s step) String() string { return fmt.Sprintf("c%d %s %d", s.cluster+1, s.do, s.n) }

// rng decides the details of the step.
func (s step) rng() *rand.Rand { return rand.New(rand.NewPCG(s.n, uint64(len(s.do)))) }

// plan is all steps, in order.
type plan []step

func (p plan) String() string {
	var b strings.Builder
	for _, s := range p {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// newPlan makes a plan with that many operations and faults. Every kind of fault occurs once before one is repeated.
// While a fault lasts, operations continue, also in the same cluster if its etcd still accepts writes; a second fault
// may begin in another cluster meanwhile.
func newPlan(seed uint64, ops, faultCount int) plan {
	g := generator{rng: rand.New(rand.NewPCG(seed, 0)), lasting: map[int]fault{}}
	for i := range faultCount {
		share := ops*(i+1)/faultCount - ops*i/faultCount
		before := g.rng.IntN(share/2 + 1)
		g.operations(before)
		g.strike()
		g.operations(share - before)
		for len(g.lasting) > 0 && (len(g.lasting) > 1 || i == faultCount-1 || g.rng.IntN(4) > 0) {
			g.heal()
		}
	}
	if faultCount == 0 {
		g.operations(ops)
	}
	return g.plan
}

type generator struct {
	rng     *rand.Rand
	plan    plan
	kinds   []fault       // that have to occur before any is repeated
	lasting map[int]fault // by cluster
}

func (g *generator) add(cluster int, do string) {
	g.plan = append(g.plan, step{cluster, do, g.rng.Uint64() >> 32})
}

func (g *generator) operations(n int) {
	ops := operations()
	for range n {
		c := g.rng.IntN(clusters)
		for g.lasting[c].down {
			c = g.rng.IntN(clusters)
		}
		g.add(c, ops[g.rng.IntN(len(ops))])
	}
}

func (g *generator) strike() {
	if len(g.kinds) == 0 {
		g.kinds = faults()
		g.rng.Shuffle(len(g.kinds), func(i, j int) { g.kinds[i], g.kinds[j] = g.kinds[j], g.kinds[i] })
	}
	c := g.rng.IntN(clusters)
	for g.lasting[c].name != "" {
		c = g.rng.IntN(clusters)
	}
	g.lasting[c] = g.kinds[0]
	g.add(c, g.kinds[0].name)
	g.kinds = g.kinds[1:]
}

func (g *generator) heal() {
	for c := range clusters {
		if g.lasting[c].name != "" {
			delete(g.lasting, c)
			g.add(c, heal)
			return
		}
	}
}
