package simulate

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/agents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var (
	flagSeed    = flag.Uint64("simulate.seed", 0, "the first seed; 0: random ones")
	flagSeeds   = flag.Int("simulate.seeds", 1, "number of seeds")
	flagHours   = flag.Float64("simulate.hours", 0, "simulated hours of each seed; 0: two fixed seeds, and few hours, since the race detector makes them 20 times slower")
	flagMesh    = flag.String("simulate.mesh", "3x10x20x100/5s", "clusters, the nodes, services and pods that each can have, and the mean time between two operations in the mesh")
	flagPlan    = flag.String("simulate.plan", "", "file with the plan; empty: made from the seed")
	flagJournal = flag.String("simulate.journal", "", "file for the journal of the last seed")
	flagShrink  = flag.Int("simulate.shrink", 0, "how often to run a plan that failed again, to print a smaller one that fails, too")
	flagExact   = flag.Bool("simulate.exact", false, "read no random numbers and no clocks of the system, for the command replay")
	flagLog     = flag.Bool("simulate.log", false, "show the logs of the agents")
)

// run simulates a plan, and returns an error with everything that was wrong.
func run(t *testing.T, steps *atomic.Int64, seen *situations, directory string, seed uint64, size Size, plan Plan) (err error) {
	synctest.Test(t, func(t *testing.T) {
		which := strconv.FormatUint(seed, 10)
		ctx := pprof.WithLabels(t.Context(), pprof.Labels(censusLabel, which))
		pprof.SetGoroutineLabels(ctx)
		ctx, cancel := context.WithCancel(ctx)
		notes, failed := newJournal(*flagJournal)
		waittest.Must(t, failed)
		w, failed := newWorld(ctx, agents.Params{Directory: directory, Direct: true, Members: 3}, notes, seen, seed, size)
		waittest.Must(t, failed)
		j := w.judge
		sleepUntil(time.Now(), startTakes)
		synctest.Wait()
		first := takeCensus(which)
		start, rng := time.Now(), rand.New(rand.NewPCG(seed, 1))
		looks, next := 0, time.Duration(0)
		lookUntil := func(end time.Duration) {
			for next < end {
				sleepUntil(start, next)
				j.look(w.clusters[rng.IntN(len(w.clusters))])
				looks++
				steps.Add(1)
				next += time.Duration(rng.ExpFloat64() * float64(5*time.Second))
			}
			sleepUntil(start, end)
		}
		for _, s := range plan {
			lookUntil(s.At)
			w.do(s)
		}
		lookUntil(size.Length)
		w.heal()
		healed := time.Now()
		rests := func() {
			since := time.Now()
			diff := j.rest()
			for ; diff != nil && time.Since(since) < calmAfter; diff = j.rest() {
				lookUntil(time.Since(start) + time.Second)
			}
			if diff != nil {
				w.found(fmt.Errorf("%s after the last fault %s", calmAfter, diff()))
			}
		}
		rests()
		calm := time.Since(healed)
		gone := w.removals(rng)
		left := leftOf(gone)
		for since := time.Now(); left != "" && time.Since(since) < removalTakes; left = leftOf(gone) {
			lookUntil(time.Since(start) + 10*time.Second)
		}
		if left != "" {
			w.found(fmt.Errorf("after %s there are %s", removalTakes, left))
		}
		for _, r := range gone {
			r.back(w)
		}
		rests()
		lookUntil(time.Since(start) + afterRest)
		w.listen(true)
		lookUntil(time.Since(start) + quietFor)
		if said := slices.DeleteFunc(w.listen(false), collects); len(said) > 0 {
			w.found(fmt.Errorf("nothing happens, and the agents write %d messages in %s: %q", len(said), quietFor, said[:min(len(said), 5)]))
		}
		for _, c := range w.clusters {
			w.found(c.history.meaning())
		}
		synctest.Wait()
		last := takeCensus(which)
		if before, now := first.total(), last.total(); now != before {
			w.found(fmt.Errorf("%d goroutines before all steps, %d at the end: %s; before: %s", before, now, last.since(first), first.since(last)))
		}
		cancel()
		for _, c := range w.clusters {
			c.stop()
			for _, m := range c.members {
				m.stop()
			}
		}
		w.judging.Wait()
		sum, failed := notes.end()
		waittest.Must(t, failed)
		t.Logf("seed %d: %d steps, %d looks, claims %v, all equal %s after the last fault, %d goroutines, journal: %s", seed, len(plan), looks, j.claims, calm.Round(time.Second), last.total(), sum)
		err = w.verdict()
	})
	return err
}

// afterRest is the time after which nothing may follow from an earlier event, and quietFor how long the agents must write
// no message to the log then.
const afterRest, quietFor = time.Minute, 6 * time.Minute

// startTakes is the time after which the goroutines of the start that wait for something once have ended.
const startTakes = 6 * time.Minute

// collects reports whether a message is that of a collection of identities: the last reference to one can end much later
// than the process of its node, with the lease.
func collects(message string) bool {
	return strings.HasPrefix(message, "Collected identities deleted=") || strings.HasPrefix(message, "Deleted an unused mapping ")
}

// hoursForAll is the length of a campaign that must see everything that happens sometimes.
const hoursForAll = 20

// TestCampaign simulates some plans.
func TestCampaign(t *testing.T) {
	if *flagExact {
		cryptotest.SetGlobalRandom(t, *flagSeed)
	} else {
		t.Parallel()
		before := debug.SetGCPercent(400) // most of what a mesh allocates is short-lived
		defer debug.SetGCPercent(before)
	}
	length := *flagHours
	switch {
	case length == 0 && testing.Short():
		length = 0.05
	case length == 0:
		length = 0.2
	}
	size, err := ParseSize(*flagMesh)
	waittest.Must(t, err)
	size.Length = time.Duration(length * float64(time.Hour))
	var seeds []uint64
	for i := range *flagSeeds {
		if *flagSeed != 0 {
			seeds = append(seeds, *flagSeed+uint64(i)) //nolint:gosec // not negative
		} else {
			seeds = append(seeds, rand.Uint64()>>32)
		}
	}
	if *flagHours == 0 {
		seeds = []uint64{1, 2}
	}
	var shown slog.Handler
	if *flagLog {
		shown = slog.NewTextHandler(os.Stderr, nil)
	}
	began, seen := time.Now(), newSituations(shown)
	for _, seed := range seeds {
		plan := NewPlan(seed, size)
		if *flagPlan != "" {
			text, err := os.ReadFile(*flagPlan)
			waittest.Must(t, err)
			plan, err = ParsePlan(string(text))
			waittest.Must(t, err)
		}
		again := func(p Plan) error {
			var alive progress
			ctx, stop := context.WithCancel(t.Context())
			var watching sync.WaitGroup
			if !*flagExact {
				watching.Go(func() { alive.watch(ctx, fmt.Sprintf("-simulate.seed=%d -simulate.hours=%g", seed, length)) })
			}
			defer watching.Wait()
			defer stop()
			return run(t, &alive.steps, seen, t.TempDir(), seed, size, p)
		}
		if err := again(plan); err != nil {
			plan = shrink(plan, *flagShrink, func(p Plan) bool {
				failed := again(p)
				if failed != nil {
					err = failed
				}
				return failed != nil
			})
			t.Fatalf("-simulate.seed=%d -simulate.hours=%g: %v\nThe plan:\n%s", seed, length, err, plan)
		}
	}
	hours := float64(len(seeds)) * length
	t.Logf("%g simulated hours in %s\n%s", hours, time.Since(began).Round(10*time.Millisecond), seen)
	if missing := seen.missing(); len(missing) > 0 && hours >= hoursForAll {
		t.Errorf("in %g hours these situations did not occur: %q", hours, missing)
	}
}
