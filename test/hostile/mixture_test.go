package hostile

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

var (
	steps = flag.Int("hostile.steps", 0, "steps of the mixture; 0: 4,000, 1,000 with the race detector, or else 200 with -short")
	seed  = flag.Uint64("hostile.seed", 0, "seed of the mixture; 0: a random one, which is printed")
)

// stepPatience is how long a step waits for the server to spoil an answer, as it may have to wait for the next session.
// busyPatience is used while too few answers were spoilt, as on a busy machine.
const (
	stepPatience = 15 * time.Millisecond
	busyPatience = 300 * time.Millisecond
)

// TestMixture: a server breaks one rule after another, at random, while its contents change, its history is compacted,
// its connections are cut, and it becomes another etcd. In the end it is honest, and synced.
func TestMixture(t *testing.T) {
	n := *steps
	switch {
	case n > 0:
	case heaptest.Raced:
		n = 1000
	case testing.Short():
		n = 200
	default:
		n = 4000
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("%d steps of -hostile.seed=%d", n, *seed)
	w := newWorld(t, func(p *clustermesh.Params) { // so that most steps find a session
		o := impatient()
		o.Timings.BackoffMax = 10 * time.Millisecond
		p.Timings.RetryMin, p.Timings.RetryMax, p.Engine = time.Millisecond, 5*time.Millisecond, o
	})
	heap := watchHeap(t)
	c, s := w.hostileCluster(t)
	w.join(c, s.endpoint())
	m := &mixture{w: w, c: c, s: s, rng: rand.New(rand.NewPCG(*seed, 0)), rules: append(rules(), endless(0), endless(600*time.Millisecond))}
	m.rules = slices.DeleteFunc(m.rules, func(r *rule) bool { return r.name == "connection: a byte a second" }) // that rule waits by itself
	for i := 0; i < n || i < 10*n && s.broken.Load() < int64(n/10); i++ {                                       // on a busy machine many steps find no session
		m.step(t, i)
	}
	t.Logf("%d steps, %d spoilt answers", m.steps, s.broken.Load())
	if s.broken.Load() < int64(n/10) {
		t.Errorf("%d spoilt answers in %d steps: nearly nothing was tried", s.broken.Load(), m.steps)
	}
	// A reader cannot know of an event that was held back without a break of the protocol. It stays unknown until a list,
	// so the honest server is another one, which is listed.
	s.become(m.rng.Uint64N(1<<40) + 1)
	s.breaks(nil)
	w.until(t, "the server, honest again, to be synced", func() bool { // the effects of its earlier behaviour are shown for a while
		st, _ := w.status(c.name)
		return st.Ready && w.equal(c)
	})
	w.sentinel(t, int(m.steps)+2)
	heap.check(t)
}

type mixture struct {
	w     *world
	c     *cluster
	s     *server
	rng   *rand.Rand
	rules []*rule
	steps int64 // so far
}

// step makes one change of the hostile server, or of an honest cluster.
func (m *mixture) step(tb testing.TB, i int) {
	tb.Helper()
	m.steps++
	switch k := m.rng.IntN(100); {
	case k < 50:
		m.s.breaks(m.rules[m.rng.IntN(len(m.rules))])
		m.wait()
	case k < 60: // in the middle of a session
		m.s.rule.Store(m.rules[m.rng.IntN(len(m.rules))])
		m.c.show(m.rng.IntN(60), i+2)
		m.wait()
	case k < 75:
		m.c.show(m.rng.IntN(60), i+2)
	case k < 80:
		m.s.compact()
	case k < 85:
		m.s.proxy.cut()
	case k < 87:
		m.s.become(m.rng.Uint64N(1<<40) + 1)
	case k < 97:
		m.s.breaks(nil)
		m.wait()
	default:
		honest := m.w.honest[m.rng.IntN(len(m.w.honest))]
		honest.show(m.rng.IntN(60), i+2)
		m.w.until(tb, "a change of "+honest.name+" to be seen", func() bool { return m.w.equal(honest) })
	}
}

// wait gives the server time to spoil an answer.
func (m *mixture) wait() {
	before := m.s.broken.Load()
	patience := stepPatience
	if before < m.steps/5 {
		patience = busyPatience
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for m.s.broken.Load() == before {
		select {
		case <-poll.C:
		case <-limit.C:
			return
		}
	}
}
