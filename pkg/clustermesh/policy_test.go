package clustermesh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// policed runs a test on a simulated clock, with a mesh that has a disconnect policy with these delays.
func policed(t *testing.T, d disconnect.Delays, test func(t *testing.T, w *world, c1, c2, c3 *remote)) {
	t.Helper()
	onAClock(t, func(p *Params) { p.Policy = &disconnect.Policy{Delays: d} }, test)
}

func (w *world) forecast(name string) disconnect.Forecast {
	if o := w.mustStatus(name).Forecast; o != nil {
		return *o
	}
	return disconnect.Forecast{}
}

// standsAt waits for a state of the policy.
func (w *world) standsAt(name string, s disconnect.State) disconnect.Forecast {
	w.t.Helper()
	w.until(fmt.Sprintf("the policy to say %s of %s", s, name), func() bool { return w.forecast(name).State == s }, func() string {
		return fmt.Sprintf("%+v", w.forecast(name))
	})
	return w.forecast(name)
}

// written returns the revision of the merged services: it increases with any change of the used backends, and of the
// reason.
func (w *world) written() uint64 { return w.view.Services.Global().Revision(w.db.ReadTxn()) }

// selected returns the clusters whose backends of service i receive traffic.
func (w *world) selected(i int) string {
	g, _, found := w.view.Services.Global().Get(w.db.ReadTxn(), services.GlobalByName("ns", fmt.Sprint("svc", i)))
	if !found {
		return "no service"
	}
	var all []string
	selection := g.Selection()
	for part, b := range g.Backends() {
		if selection.Takes(part, b) {
			all = append(all, part.Cluster)
		}
	}
	return strings.Join(all, " ")
}

// nothingChanges checks that the merged services do not change for some time.
func (w *world) nothingChanges(what string, long time.Duration) {
	w.t.Helper()
	_, changed := w.view.Services.Global().AllWatch(w.db.ReadTxn())
	select {
	case <-changed:
		w.t.Fatalf("%s: the merged services were changed: %s", what, w.backends(1))
	case <-time.After(long):
	}
}

func TestTheBackendsOfAClusterThatIsDeadForLongerThanItsDelayLeaveAndThoseOfTheOthersStay(t *testing.T) {
	delays := disconnect.DefaultDelays()
	policed(t, delays, func(t *testing.T, w *world, c1, _, _ *remote) {
		c1.goes()
		o := w.standsAt("c1", disconnect.Demote)
		confirmed := o.Evidence.AsOf
		inTime := func(what string, delay time.Duration) {
			t.Helper()
			if after := w.forecast("c1").Since.Sub(confirmed); after < delay || after > delay+time.Second {
				t.Errorf("%s after %s, want %s", what, after, delay)
			}
		}
		inTime("demoted", delays.Demote)
		if got := w.selected(1); got != "c2 c3" {
			t.Errorf("demoted, traffic goes to %s", got)
		}
		if got := w.selected(120); got != "c1" {
			t.Errorf("demoted, traffic of its own service goes to %q", got)
		}
		if o.Next != disconnect.Withdraw || o.NextAt.Before(confirmed.Add(delays.Withdraw)) || !strings.Contains(o.Why, "could not be confirmed since") {
			t.Errorf("the forecast is %+v", o)
		}
		w.standsAt("c1", disconnect.Withdraw)
		inTime("withdrawn", delays.Withdraw)
		if got, want := w.backends(1), "c2 10.2.0.1, c3 10.3.0.1"; got != want {
			t.Errorf("withdrawn, the backends are %s, want %s", got, want)
		}
		if got, want := w.backends(120), "c1 10.1.0.120"; got != want {
			t.Errorf("the last backends of a service are %s, want %s", got, want)
		}
		if n := len(c1.inView()); n != 4*121 {
			t.Errorf("%d of its objects are left: only the use of its backends may change", n)
		}
		c1.returns()
		back := time.Now()
		w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
		w.standsAt("c1", disconnect.Keep)
		if after := time.Since(back); after < delays.Restore || after > delays.Restore+time.Minute {
			t.Errorf("back after %s, want %s and the pause between two attempts", after, delays.Restore)
		}
		if got := w.selected(1); got != "c1 c2 c3" {
			t.Errorf("back, traffic goes to %s", got)
		}
	})
}

func TestAfterAProbeThatFailsOnceNothingIsWithdrawn(t *testing.T) {
	policed(t, disconnect.DefaultDelays(), func(t *testing.T, w *world, c1, _, _ *remote) {
		before := w.written()
		c1.goes()
		w.until("a probe to fail", func() bool { return !w.mustStatus("c1").Connected })
		c1.returns()
		w.confirmedAfter("c1", time.Now())
		w.nothingChanges("for longer than every delay", 20*time.Minute)
		if w.written() != before {
			t.Error("the merged services were changed at once")
		}
		if o := w.forecast("c1"); o.State != disconnect.Keep || !o.NextAt.IsZero() {
			t.Errorf("the forecast is %+v", o)
		}
	})
}

func TestWhenEveryClusterIsUnreachableAtOnceNothingIsWithdrawn(t *testing.T) {
	delays := disconnect.DefaultDelays()
	policed(t, delays, func(t *testing.T, w *world, c1, c2, c3 *remote) {
		before := w.written()
		for _, r := range []*remote{c1, c2, c3} {
			r.goes()
		}
		w.until("the policy to be held", func() bool { return !w.forecast("c1").Held.IsZero() })
		w.nothingChanges("for several delays", 3*delays.Withdraw)
		for _, name := range []string{"c1", "c2", "c3"} {
			if o := w.forecast(name); o.State != disconnect.Keep || !o.NextAt.IsZero() || o.Failing < 2 || o.Judged != 3 {
				t.Errorf("%s: the forecast is %+v", name, o)
			}
		}
		if w.written() != before {
			t.Error("the merged services were changed before the policy was held")
		}
		// The failure was not on our side alone: one cluster stays unreachable.
		c2.returns()
		c3.returns()
		w.backendsAre(1, "c2 10.2.0.1, c3 10.3.0.1")
		if o := w.standsAt("c1", disconnect.Withdraw); !o.Held.IsZero() {
			t.Errorf("the forecast is %+v", o)
		}
		for _, name := range []string{"c2", "c3"} {
			if o := w.forecast(name); o.State != disconnect.Keep || !o.Since.Before(o.Evidence.AsOf) {
				t.Errorf("%s: the forecast is %+v", name, o)
			}
		}
		c1.returns()
		w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
	})
}

func TestAnApiserverThatComesBackHealthyDuringARollingUpgradeCausesNoFlap(t *testing.T) {
	policed(t, disconnect.DefaultDelays(), func(t *testing.T, w *world, c1, _, _ *remote) {
		before := w.written()
		for round := range 4 {
			if c1.goes(); round%2 == 1 { // otherwise a new replica replaces the old one
				w.until("the cluster to be missed", func() bool { return !w.mustStatus("c1").Connected })
			}
			c1.returns()
			w.confirmedAfter("c1", time.Now())
		}
		w.nothingChanges("afterwards", time.Minute)
		if w.written() != before {
			t.Error("the merged services were changed")
		}
		if o := w.forecast("c1"); o.State != disconnect.Keep {
			t.Errorf("the forecast is %+v", o)
		}
	})
}

// TestAnApiserverThatIsUpForLessThanRestoreDoesNotReturn is the opposite case: a demoted cluster is not used again each
// time its server is up for a moment.
func TestAnApiserverThatIsUpForLessThanRestoreDoesNotReturn(t *testing.T) {
	delays := disconnect.DefaultDelays()
	policed(t, delays, func(t *testing.T, w *world, c1, _, _ *remote) {
		c1.goes()
		w.standsAt("c1", disconnect.Demote)
		demoted := w.written()
		for range 5 {
			c1.returns()
			w.until("the next state to be to keep", func() bool { o := w.forecast("c1"); return o.Next == disconnect.Keep && !o.NextAt.IsZero() })
			w.nothingChanges("for almost as long as its return takes", delays.Restore-15*time.Second) // a probe, and a look of the policy
			c1.goes()
			w.until("its return to be off", func() bool { return w.forecast("c1").NextAt.IsZero() || w.forecast("c1").Next != disconnect.Keep })
		}
		if w.written() != demoted {
			t.Error("the merged services were changed")
		}
		c1.returns()
		w.standsAt("c1", disconnect.Keep)
		if up := time.Since(w.mustStatus("c1").ConnectedSince); up < delays.Restore {
			t.Errorf("back after %s", up)
		}
	})
}

func TestAClusterWhoseWriterIsSilentIsDemotedAndNotWithdrawn(t *testing.T) {
	delays := disconnect.DefaultDelays()
	policed(t, delays, func(t *testing.T, w *world, c1, _, _ *remote) {
		c1.mute()
		o := w.standsAt("c1", disconnect.Demote)
		if !o.Evidence.Fresh || o.NextAt != (time.Time{}) || !strings.Contains(o.Why, "its etcd answers") {
			t.Errorf("the forecast is %+v", o)
		}
		if got := w.selected(1); got != "c2 c3" {
			t.Errorf("traffic goes to %s", got)
		}
		w.nothingChanges("for longer than the delay of withdrawing", 20*time.Minute)
		failures := w.mustStatus("c1").Failures
		c1.goes()
		w.until("the end of the session", func() bool { return w.mustStatus("c1").Failures > failures })
		back := time.Now()
		c1.returns() // the heartbeat key exists as before
		w.until("another session", func() bool {
			o := w.forecast("c1")
			return o.Evidence.Fresh && o.Evidence.Connected.After(back) && o.Evidence.Heartbeat.After(back)
		})
		w.nothingChanges("for longer than it takes to return", 2*delays.Restore)
		c1.lives()
		w.standsAt("c1", disconnect.Keep)
		if got := w.selected(1); got != "c1 c2 c3" {
			t.Errorf("traffic goes to %s", got)
		}
	})
}

func TestARemovedClusterIsForgottenByThePolicy(t *testing.T) {
	policed(t, disconnect.DefaultDelays(), func(t *testing.T, w *world, c1, _, _ *remote) {
		c1.goes()
		w.standsAt("c1", disconnect.Withdraw)
		must(t, os.Remove(filepath.Join(w.dir, "c1")))
		w.gone("c1")
		c1.returns()
		c1.join()
		w.inState("c1", remotecluster.Ready)
		w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
		w.standsAt("c1", disconnect.Keep)
		w.until("nothing held against c1", func() bool { return w.forecast("c1").Why == "" })
	})
}

func TestAMeshWithoutAPolicyHasNoOutlook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.remote("c1", 1).join()
	w.inState("c1", remotecluster.Ready)
	if o := w.mustStatus("c1").Forecast; o != nil {
		t.Errorf("the forecast is %+v", o)
	}
}

// TestThePolicyIsAsPatientAsItsProbes: within the policy's patience every cluster is probed three times, also in a
// cluster of 8,000 nodes, where probes are rare.
func TestThePolicyIsAsPatientAsItsProbes(t *testing.T) {
	t.Parallel()
	delays := disconnect.DefaultPolicy()
	for size, want := range map[int]time.Duration{1: 30 * time.Second, 8000: 134 * time.Second} {
		p := Params{Policy: &delays, Timings: remotecluster.DefaultTimings(), Engine: etcd.Options{ClusterSize: func() int { return size }}}
		patience := newPolicy(&p).patience()
		probes := 3 * p.Engine.Stretch(etcd.DefaultTimings().ProbeInterval)
		if patience < probes || patience.Truncate(time.Second) != want {
			t.Errorf("with %d nodes it waits for %s, and three probes take %s", size, patience, probes)
		}
	}
}
