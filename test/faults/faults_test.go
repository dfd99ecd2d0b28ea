package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // one of the proxy's toxics uses that logger
	// A connection that closes while a toxic has something to send leaves goroutines of the proxy behind.
	const proxy = "github.com/Shopify/toxiproxy/v2"
	etcdtest.Main(m, goleak.IgnoreAnyFunction(proxy+"/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction(proxy+".(*ToxicLink).read"), goleak.IgnoreAnyFunction(proxy+".(*ToxicLink).write"))
}

var (
	flagSeed   = flag.Uint64("faults.seed", 0, "what the plan is made from; 0 takes one at random")
	flagOps    = flag.Int("faults.ops", 600, "number of operations")
	flagFaults = flag.Int("faults.faults", 15, "number of faults")
)

func TestFaults(t *testing.T) {
	t.Parallel()
	seed := *flagSeed
	for seed == 0 {
		seed = rand.Uint64() >> 32
	}
	ops, faults := *flagOps, *flagFaults
	if testing.Short() {
		ops, faults = ops/10, faults/10
	}
	origin := fmt.Sprintf("-faults.seed=%d -faults.ops=%d -faults.faults=%d", seed, ops, faults)
	t.Log(origin)
	if err := run(t, newPlan(seed, ops, faults)); err != nil {
		t.Fatalf("%s: %v", origin, err)
	}
}

// run plays a plan in a new world and returns the first failure.
func run(t *testing.T, p plan) error {
	t.Helper()
	began := time.Now()
	w := newWorld(t)
	d := driver{world: w, kinds: map[string]int{}}
	for _, c := range w.clusters {
		if err := w.until("the first sync of "+c.name, c.well); err != nil {
			return err
		}
	}
	for i := range w.clusters {
		p = append(p[:len(p):len(p)], step{i, heal, 0}) // end the remaining faults
	}
	for i, s := range p {
		if err := d.play(s); err != nil {
			return fmt.Errorf("at step %d, %q: %w\nsteps since view and model agreed last:\n%s%s", i+1, s, err, d.since, w.states())
		}
	}
	t.Logf("%d operations and %d faults of %d kinds in %s", d.operations, d.faults, len(d.kinds), time.Since(began).Round(time.Second))
	return nil
}

// driver plays steps.
type driver struct {
	*world
	since              plan // since the last agreement
	operations, faults int
	kinds              map[string]int
}

func (d *driver) play(s step) error {
	d.since = append(d.since, s)
	c := d.clusters[s.cluster]
	f, isFault := faultOf(s.do)
	switch {
	case s.do == heal:
		if c.lasting == nil {
			return d.check()
		}
		if err := d.check(); err != nil {
			return fmt.Errorf("while %s lasts: %w", c.lasting.name, err)
		}
		healed := c.lasting.name
		err := c.heal(s)
		if err == nil {
			err = d.check()
		}
		if err != nil {
			return fmt.Errorf("after %s: %w", healed, err)
		}
		return nil
	case isFault:
		if err := d.check(); err != nil {
			return err
		}
		d.faults++
		d.kinds[f.name]++
		return c.strike(f, s)
	}
	d.operations++
	return c.operate(s)
}

func (d *driver) check() error {
	if err := d.agree(); err != nil {
		return err
	}
	d.since = nil
	return nil
}

func TestPlan(t *testing.T) {
	t.Parallel()
	p := newPlan(7, 2000, 40)
	if newPlan(7, 2000, 40).String() != p.String() {
		t.Error("the same seed makes another plan")
	}
	count := map[bool]int{}
	kinds := map[string]bool{}
	for _, s := range p {
		f, isFault := faultOf(s.do)
		if isFault {
			kinds[f.name] = true
		}
		if s.do != heal {
			count[isFault]++
		}
	}
	if count[false] != 2000 || count[true] != 40 || len(kinds) != len(faults()) {
		t.Errorf("%d operations, %d faults of %d kinds; want 2000, 40, all %d", count[false], count[true], len(kinds), len(faults()))
	}
}
