package disconnect

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

// TestRandomFaults runs random schedules of faults and compares all actions of the machine with the real states. The
// floors hold, no transition is faster than its delay or than the hysteresis, and when the faults end all clusters are
// kept.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	schedules := 500 // random schedules of faults
	switch {
	case testing.Short():
		schedules = 30
	case heaptest.Raced: // one goroutine; make test-all runs all of them without the race detector
		schedules = 100
	}
	seen := map[string]int{}
	for seed := range uint64(schedules) {
		c := newCourse(seed)
		if err := c.run(); err != nil {
			t.Fatalf("schedule %d, %s after the start, with %+v: %v", seed, c.now.Sub(epoch), c.policy, err)
		}
		for what, n := range c.seen {
			seen[what] += n
		}
	}
	t.Log(seen)
	for _, what := range []string{"keep to demote", "keep to withdraw", "demote to withdraw", "demote to keep", "withdraw to keep", "held", "silent"} {
		if seen[what] < schedules/20 {
			t.Errorf("%q came %d times in %d schedules: they prove nothing about it", what, seen[what], schedules)
		}
	}
}

// course is one schedule of faults, and its run.
type course struct {
	rnd      *rand.Rand
	policy   Policy
	m        *Machine
	now      time.Time
	lastLook time.Time
	remotes  map[string]*remote
	outage   bool // on the machine's side: no cluster can be reached
	healing  bool // no new faults
	seen     map[string]int
	held     bool
}

// remote is the real state of a cluster, and the evidence about it.
type remote struct {
	down, mute bool
	ev         Evidence
	session    time.Time // start of the session; zero while there is none
	state      State     // according to the transitions
	since      time.Time // start of the state
	goodLooks  time.Time // start of the looks in which it was always fresh; zero when it was not in the last one
	doubtLooks time.Time // start of the looks in which it was never fresh
}

func newCourse(seed uint64) *course {
	rnd := rand.New(rand.NewPCG(seed, 7))
	span := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rnd.Int64N(int64(most-least)))
	}
	c := &course{rnd: rnd, now: epoch, remotes: map[string]*remote{}, seen: map[string]int{}}
	delays := func() Delays {
		d := Delays{
			Demote: span(time.Second, 3*time.Minute), Silence: span(2*time.Minute, 8*time.Minute), Restore: span(time.Second, time.Minute),
		}
		d.Withdraw = d.Demote + span(0, 8*time.Minute)
		switch rnd.IntN(6) {
		case 0:
			d.Demote = 0
		case 1:
			d.Withdraw = 0
		case 2:
			d.Silence = 0
		}
		return d
	}
	c.policy = Policy{Delays: delays(), Clusters: map[string]Delays{"c0": delays()}}
	c.m = New(c.policy, patience)
	for i := range 1 + rnd.IntN(6) {
		c.remotes[fmt.Sprint("c", i)] = &remote{down: rnd.IntN(8) == 0, since: epoch}
	}
	return c
}

// run simulates an hour with faults, and then some time without.
func (c *course) run() error {
	faultsEnd := epoch.Add(time.Hour)
	look := epoch
	for second := 0; second < 4200; second++ {
		c.now = epoch.Add(time.Duration(second) * time.Second)
		if c.healing = !c.now.Before(faultsEnd); !c.healing {
			c.fault()
		} else {
			c.heal()
		}
		for i, name := range slices.Sorted(maps.Keys(c.remotes)) {
			c.happens(c.remotes[name], second+i)
		}
		if c.now.Before(look) {
			continue
		}
		next, err := c.look()
		if err != nil {
			return err
		}
		look = c.now.Add(time.Duration(1+c.rnd.IntN(8)) * time.Second)
		if !next.IsZero() && next.Before(look) {
			look = next
		}
		if !c.healing && c.rnd.IntN(600) == 0 { // no step for a while
			look = c.now.Add(time.Duration(c.rnd.IntN(600)) * time.Second)
		}
	}
	for name, r := range c.remotes {
		if r.state != Keep {
			return fmt.Errorf("%s is still at %s ten minutes after the last fault", name, r.state)
		}
	}
	return nil
}

// fault changes the faults at random: it may start or end some.
func (c *course) fault() {
	for _, name := range slices.Sorted(maps.Keys(c.remotes)) {
		r := c.remotes[name]
		if c.rnd.IntN(map[bool]int{false: 400, true: 250}[r.down]) == 0 {
			r.down = !r.down
		}
		if c.rnd.IntN(700) == 0 {
			r.mute = !r.mute
		}
		if c.rnd.IntN(500) == 0 {
			r.session = time.Time{} // the connection is lost
		}
	}
	if c.rnd.IntN(map[bool]int{false: 1500, true: 300}[c.outage]) == 0 {
		c.outage = !c.outage
	}
}

func (c *course) heal() {
	c.outage = false
	for _, r := range c.remotes {
		r.down, r.mute = false, false
	}
}

// happens simulates one second of a cluster. Probes and attempts to connect occur every five seconds, heartbeats every
// minute.
func (c *course) happens(r *remote, second int) {
	up := !r.down && !c.outage
	if second%60 == 0 && !r.mute && up && !r.session.IsZero() {
		r.ev.Heartbeat = c.now
		r.ev.HeartbeatRevision++
	}
	if second%5 != 0 {
		return
	}
	switch {
	case up && r.session.IsZero():
		r.session = c.now
		if r.ev.HeartbeatRevision > 0 {
			r.ev.Heartbeat = c.now // the key exists, unchanged
		}
		fallthrough
	case up:
		r.ev.AsOf, r.ev.Synced = c.now, true
	case !r.session.IsZero() && c.now.Sub(r.ev.AsOf) > 15*time.Second:
		r.session = time.Time{}
	}
}

// look steps the machine and checks its transitions.
func (c *course) look() (next time.Time, err error) {
	evidence := map[string]Evidence{}
	failing, judged := 0, 0 // without clusters whose heartbeat alone is missing
	blind := !c.lastLook.IsZero() && c.now.Sub(c.lastLook) > patience
	c.lastLook = c.now
	for name, r := range c.remotes {
		r.ev.Connected = r.session
		r.ev.Fresh = r.ev.Synced && !r.session.IsZero() && c.now.Sub(r.ev.AsOf) <= patience
		evidence[name] = r.ev
		if r.ev.Synced {
			judged++
			if !r.ev.Fresh && c.now.Sub(r.ev.AsOf) > patience {
				failing++
			}
		}
		r.goodLooks, r.doubtLooks = looks(r.goodLooks, r.ev.Fresh, blind, c.now), looks(r.doubtLooks, !r.ev.Fresh, blind, c.now)
	}
	transitions, next := c.m.Step(c.now, evidence)
	most := judged >= 2 && 2*failing > judged
	if most && !c.held {
		c.seen["held"]++
	}
	c.held = most
	moved := map[string]bool{}
	for _, tr := range transitions {
		r := c.remotes[tr.Cluster]
		if moved[tr.Cluster] || tr.From != r.state || tr.To == tr.From || tr.Why == "" {
			return next, fmt.Errorf("%+v, which was at %s", tr, r.state)
		}
		moved[tr.Cluster] = true
		if err := c.judge(r, tr, most); err != nil {
			return next, fmt.Errorf("%+v with %+v, there since %s: %w", tr, r.ev, c.now.Sub(r.since), err)
		}
		c.seen[tr.From.String()+" to "+tr.To.String()]++
		r.state, r.since = tr.To, c.now
	}
	if !next.IsZero() && !next.After(c.now) {
		return next, fmt.Errorf("next is %s ago", c.now.Sub(next))
	}
	return next, nil
}

// looks returns the time since which a condition held in every look.
func looks(before time.Time, is, blind bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case before.IsZero() || blind:
		return now
	}
	return before
}

// judge returns an error if a transition is not allowed.
func (c *course) judge(r *remote, tr Transition, most bool) error {
	d := c.policy.Of(tr.Cluster)
	unconfirmed := c.now.Sub(r.ev.AsOf)
	switch {
	case !r.ev.Synced:
		return fmt.Errorf("it was never synced")
	case tr.To < tr.From: // better
		if r.goodLooks.IsZero() || c.now.Sub(r.goodLooks) < d.Restore || c.now.Sub(r.session) < d.Restore {
			return fmt.Errorf("good only for %s", c.now.Sub(r.goodLooks))
		}
		if tr.To == Keep && d.Silence > 0 && !r.ev.Heartbeat.IsZero() && c.now.Sub(r.goodLooks) > d.Silence && c.now.Sub(r.ev.Heartbeat) > d.Silence {
			return fmt.Errorf("its writer is silent")
		}
		return nil
	case most:
		return fmt.Errorf("more than half are failing")
	case c.now.Sub(r.since) < patience:
		return fmt.Errorf("at once after the transition before")
	case tr.To == Demote && r.ev.Fresh:
		c.seen["silent"]++
		if d.Silence == 0 || r.ev.Heartbeat.IsZero() || c.now.Sub(r.ev.Heartbeat) < d.Silence {
			return fmt.Errorf("it is fresh, and its heartbeat is %s old", c.now.Sub(r.ev.Heartbeat))
		}
		return nil
	case r.ev.Fresh:
		return fmt.Errorf("it is fresh")
	case c.now.Sub(r.doubtLooks) < patience:
		return fmt.Errorf("seen to fail only for %s", c.now.Sub(r.doubtLooks))
	case tr.To == Demote && (d.Demote == 0 || unconfirmed < d.Demote),
		tr.To == Withdraw && (d.Withdraw == 0 || unconfirmed < d.Withdraw),
		tr.To == Withdraw && tr.From == Keep && d.Demote > 0:
		return fmt.Errorf("unconfirmed only for %s", unconfirmed)
	}
	return nil
}
