package faults

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

var (
	flagFreshnessSeed = flag.Uint64("freshness.seed", 0, "what contents and faults are made from; 0 takes one at random")
	flagClaims        = flag.Int("freshness.claims", 300, "number of claims that are judged, at the least")
)

// witnesses is the number of clusters, bound the age above which a copy of one of them is stale, and eachKind the
// minimum number of faults of each kind.
const (
	witnesses = 3
	bound     = time.Second
	eachKind  = 2
)

// TestFreshness collects the status's claims of freshness during faults, and then compares them with the recorded
// contents of the etcds.
func TestFreshness(t *testing.T) {
	t.Parallel()
	seed := *flagFreshnessSeed
	for seed == 0 {
		seed = rand.Uint64() >> 32
	}
	enough, each := *flagClaims, eachKind
	if testing.Short() {
		enough, each = enough/5, 1
	}
	origin := fmt.Sprintf("-freshness.seed=%d -freshness.claims=%d", seed, enough)
	t.Log(origin)
	o := newOracle(t, seed)
	began := time.Now()
	claims, err := o.play(enough, each)
	if err != nil {
		t.Fatalf("%s: %v", origin, err)
	}
	took := time.Since(began)
	for _, lie := range judge(claims) {
		t.Errorf("%s: %v", origin, lie)
	}
	o.summary(claims, took)
}

// oracle is a mesh, whose clusters are witnesses, and the claims of its status.
type oracle struct {
	*world
	sampler   *sampler
	witnesses []*witness
	rng       *rand.Rand
}

func newOracle(t *testing.T, seed uint64) *oracle {
	t.Helper()
	w := emptyWorld(t, func(p *clustermesh.Params) {
		p.Engine.(*etcd.Options).Timings.ProbeInterval = 10 * time.Millisecond
		p.Timings.StaleAfter = bound
	})
	o := &oracle{world: w, rng: rand.New(rand.NewPCG(seed, 0))}
	var jobs []func(context.Context) error
	for i := range witnesses {
		h := newWitness(w, i)
		o.witnesses = append(o.witnesses, h)
		jobs = append(jobs, h.follow, h.churn(rand.New(rand.NewPCG(seed, uint64(i+1)))))
	}
	o.sampler = &sampler{w: w, witnesses: o.witnesses, before: map[string]asOfClaim{}, made: map[*witness]int{}}
	w.start(append(jobs, o.sampler.run)...)
	for _, h := range o.witnesses {
		h.writing.Lock()
		h.publish()
		h.writing.Unlock()
		h.must(h.writeFile(""))
	}
	return o
}

// play begins faults until there are enough claims and faults, and ends them. Then all clusters have to be confirmed
// again, and the histories to be complete.
func (o *oracle) play(enough, each int) ([]asOfClaim, error) {
	err := o.confirmed()
	for limit := time.Now().Add(patience + time.Duration(enough)*50*time.Millisecond); err == nil; {
		made, n, lie := o.sampler.count()
		if n >= enough && rarest(o.witnesses) >= each {
			break
		}
		if err = lie; err == nil && time.Now().After(limit) {
			err = fmt.Errorf("there are only %d claims, and of one kind of fault only %d that were noticed\n%s", n, rarest(o.witnesses), o.states())
		}
		for _, h := range o.witnesses {
			h.suffer(o.rng, made[h])
		}
		err = cmp.Or(err, waiting.Sleep(o.t.Context(), 5*time.Millisecond))
	}
	made, _, lie := o.sampler.count()
	for _, h := range o.witnesses {
		if h.lasting != nil {
			h.relent(made[h])
		}
	}
	err = cmp.Or(err, o.confirmed(), lie)
	claims := o.sampler.close()
	for _, h := range o.witnesses {
		if closed := h.close(); closed != nil && err == nil {
			err = fmt.Errorf("the history of %s: %w", h.name, closed)
		}
	}
	return claims, err
}

// confirmed waits until everything is known as of now.
func (o *oracle) confirmed() error {
	now := time.Now()
	for _, h := range o.witnesses {
		err := o.until(h.name+" to be confirmed", func() bool {
			st := o.status(h.cluster)
			for _, r := range numberedKinds() {
				if f := st.Families[r].Freshness; f.State != remotecluster.FreshnessSynced || f.AsOf.Before(now) {
					return false
				}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// summary logs the number of claims by state, and by the faults during which they were made.
func (o *oracle) summary(claims []asOfClaim, took time.Duration) {
	states, during := map[remotecluster.FreshnessState]int{}, map[string]int{}
	for _, c := range claims {
		states[c.State]++
	}
	times, unanswered, positions := map[string]int{}, 0, int64(0)
	for _, h := range o.witnesses {
		for _, s := range h.struck {
			times[s.fault.name]++
			during[s.fault.name] += s.claims
		}
		unanswered += len(h.history.began) - 1 - len(h.history.acks)
		positions += h.last
	}
	total := 0
	for _, n := range during {
		total += n
	}
	o.t.Logf("%d claims %v of %d readings in %s; %d revisions, %d writes without an answer", len(claims), states, o.sampler.asked, took.Round(time.Second), positions, unanswered)
	o.t.Logf("faults %v; %d claims were made about a cluster during one: %v", times, total, during)
}
