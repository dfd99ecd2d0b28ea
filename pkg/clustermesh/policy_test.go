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
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// delays returns short delays. No failure is known before staleSoon.
func delays(demote, withdraw time.Duration) disconnect.Delays {
	return disconnect.Delays{Demote: demote, Withdraw: withdraw, Restore: time.Second}
}

const staleSoon = time.Second

// policed returns a mesh of three clusters with a disconnect policy. Each has the services svc0 to svc119, and only c1
// has svc120.
func policed(t *testing.T, d disconnect.Delays) (w *world, c1, c2, c3 *remote) {
	t.Helper()
	w = newWorld(t, func(p *Params) {
		p.Policy = &disconnect.Policy{Delays: d}
		p.Timings.StaleAfter = staleSoon
		etcdOf(p).Timings.Probe = 300 * time.Millisecond
	})
	c1, c2, c3 = w.remote("c1", 1), w.remote("c2", 2), w.remote("c3", 3)
	c1.object(120, 1)
	for _, r := range []*remote{c1, c2, c3} {
		r.join()
		r.converges()
		w.inState(r.name, remotecluster.Ready)
	}
	w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
	return w, c1, c2, c3
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
	before, end := w.written(), time.Now().Add(long)
	w.until(what, func() bool {
		if now := w.written(); now != before {
			w.t.Fatalf("%s: the merged services were changed: %s", what, w.backends(1))
		}
		return time.Now().After(end)
	})
}

func TestTheBackendsOfAClusterThatIsDeadForLongerThanItsDelayLeaveAndThoseOfTheOthersStay(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	w, c1, _, _ := policed(t, delays(2*time.Second, 5*time.Second))
	c1.etcd.Kill(t)
	o := w.standsAt("c1", disconnect.Demote)
	confirmed := o.Evidence.AsOf
	if early := o.Since.Sub(confirmed); early < 2*time.Second {
		t.Errorf("demoted after %s", early)
	}
	if got := w.selected(1); got != "c2 c3" {
		t.Errorf("demoted, traffic goes to %s", got)
	}
	if got := w.selected(120); got != "c1" {
		t.Errorf("demoted, traffic of its own service goes to %q", got)
	}
	if o.Next != disconnect.Withdraw || o.NextAt.Before(confirmed.Add(5*time.Second)) || !strings.Contains(o.Why, "could not be confirmed since") {
		t.Errorf("the forecast is %+v", o)
	}
	o = w.standsAt("c1", disconnect.Withdraw)
	if early := o.Since.Sub(confirmed); early < 5*time.Second {
		t.Errorf("withdrawn after %s", early)
	}
	if got, want := w.backends(1), "c2 10.2.0.1, c3 10.3.0.1"; got != want {
		t.Errorf("withdrawn, the backends are %s, want %s", got, want)
	}
	if got, want := w.backends(120), "c1 10.1.0.120"; got != want {
		t.Errorf("the last backends of a service are %s, want %s", got, want)
	}
	if n := len(c1.inView()); n != 4*121 {
		t.Errorf("%d of its objects are left: only the use of its backends may change", n)
	}
	c1.etcd.Restart(t)
	w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
	w.standsAt("c1", disconnect.Keep)
	if st := w.mustStatus("c1"); time.Since(st.ConnectedSince) < time.Second {
		t.Errorf("back %s after its connection", time.Since(st.ConnectedSince))
	}
	if got := w.selected(1); got != "c1 c2 c3" {
		t.Errorf("back, traffic goes to %s", got)
	}
}

func TestAfterAProbeThatFailsOnceNothingIsWithdrawn(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	w, c1, _, _ := policed(t, delays(4*time.Second, 6*time.Second))
	before := w.written()
	c1.etcd.Freeze(t)
	w.until("a probe to fail", func() bool { return !w.mustStatus("c1").Connected })
	c1.etcd.Thaw(t)
	failed := time.Now()
	w.until("c1 to be confirmed", func() bool {
		return w.mustStatus("c1").Families[wire.Services].Freshness.AsOf.After(failed)
	})
	w.nothingChanges("for longer than every delay", 8*time.Second)
	if w.written() != before {
		t.Error("the merged services were changed at once")
	}
	if o := w.forecast("c1"); o.State != disconnect.Keep || !o.NextAt.IsZero() {
		t.Errorf("the forecast is %+v", o)
	}
}

func TestWhenEveryClusterIsUnreachableAtOnceNothingIsWithdrawn(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	const demote, withdraw = 2 * time.Second, 3 * time.Second
	w, c1, c2, c3 := policed(t, delays(demote, withdraw))
	before := w.written()
	for _, r := range []*remote{c1, c2, c3} {
		r.etcd.Freeze(t)
	}
	w.until("the policy to be held", func() bool { return !w.forecast("c1").Held.IsZero() })
	w.nothingChanges("for several delays", 3*withdraw)
	for _, name := range []string{"c1", "c2", "c3"} {
		if o := w.forecast(name); o.State != disconnect.Keep || !o.NextAt.IsZero() || o.Failing < 2 || o.Judged != 3 {
			t.Errorf("%s: the forecast is %+v", name, o)
		}
	}
	if w.written() != before {
		t.Error("the merged services were changed before the policy was held")
	}
	// The failure was not on our side alone: one cluster stays unreachable.
	c2.etcd.Thaw(t)
	c3.etcd.Thaw(t)
	w.backendsAre(1, "c2 10.2.0.1, c3 10.3.0.1")
	if o := w.standsAt("c1", disconnect.Withdraw); !o.Held.IsZero() {
		t.Errorf("the forecast is %+v", o)
	}
	for _, name := range []string{"c2", "c3"} {
		if o := w.forecast(name); o.State != disconnect.Keep || !o.Since.Before(o.Evidence.AsOf) {
			t.Errorf("%s: the forecast is %+v", name, o)
		}
	}
	c1.etcd.Thaw(t)
	w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
}

func TestAnApiserverThatComesBackHealthyDuringARollingUpgradeCausesNoFlap(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	w, c1, _, _ := policed(t, delays(20*time.Second, time.Minute))
	before := w.written()
	for round := range 4 {
		if round%2 == 0 {
			c1.etcd.Restart(t) // a new replica replaces the old one
		} else {
			c1.etcd.Kill(t)
			w.until("the cluster to be missed", func() bool { return !w.mustStatus("c1").Connected })
			c1.etcd.Restart(t)
		}
		back := time.Now()
		w.until("c1 to be confirmed", func() bool {
			return w.mustStatus("c1").Families[wire.Services].Freshness.AsOf.After(back)
		})
	}
	w.nothingChanges("afterwards", time.Second)
	if w.written() != before {
		t.Error("the merged services were changed")
	}
	if o := w.forecast("c1"); o.State != disconnect.Keep {
		t.Errorf("the forecast is %+v", o)
	}
}

// TestAnApiserverThatIsUpForLessThanRestoreDoesNotReturn is the opposite case: a demoted cluster is not used again each
// time its server is up for a moment.
func TestAnApiserverThatIsUpForLessThanRestoreDoesNotReturn(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	d := delays(time.Second, 0)
	d.Restore = 6 * time.Second
	w, c1, _, _ := policed(t, d)
	c1.etcd.Kill(t)
	w.standsAt("c1", disconnect.Demote)
	for short := 0; short < 3; {
		demoted, start := w.written(), time.Now()
		c1.etcd.Restart(t)
		w.until("the next state to be to keep", func() bool { o := w.forecast("c1"); return o.Next == disconnect.Keep && !o.NextAt.IsZero() })
		c1.etcd.Kill(t)
		w.until("its return to be off", func() bool { return w.forecast("c1").NextAt.IsZero() })
		if time.Since(start) >= d.Restore { // a slow machine: the server may have been up for long enough
			w.standsAt("c1", disconnect.Demote)
			continue
		}
		if short++; w.written() != demoted {
			t.Error("the merged services were changed")
		}
	}
	c1.etcd.Restart(t)
	w.standsAt("c1", disconnect.Keep)
	if up := time.Since(w.mustStatus("c1").ConnectedSince); up < d.Restore {
		t.Errorf("back after %s", up)
	}
}

func TestAClusterWhoseWriterIsSilentIsDemotedAndNotWithdrawn(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	d := delays(5*time.Second, 10*time.Second) // longer than a restart, and than a slow machine needs for an answer
	d.Silence = 2 * time.Second
	w, c1, _, _ := policed(t, d)
	c1.put(wire.HeartbeatKey, []byte("now"))
	o := w.standsAt("c1", disconnect.Demote)
	if !o.Evidence.Fresh || o.NextAt != (time.Time{}) || !strings.Contains(o.Why, "its etcd answers") {
		t.Errorf("the forecast is %+v", o)
	}
	if got := w.selected(1); got != "c2 c3" {
		t.Errorf("traffic goes to %s", got)
	}
	w.nothingChanges("for longer than the delay of withdrawing", 11*time.Second)
	failures := w.mustStatus("c1").Failures
	c1.etcd.Kill(t)
	w.until("the end of the session", func() bool { return w.mustStatus("c1").Failures > failures })
	back := time.Now()
	c1.etcd.Restart(t) // the heartbeat key exists again, but was not written
	w.until("another session", func() bool {
		o := w.forecast("c1")
		return o.Evidence.Fresh && o.Evidence.Connected.After(back) && o.Evidence.Heartbeat.After(back)
	})
	w.nothingChanges("for longer than it takes to return", 2*time.Second)
	end := time.Now().Add(30 * time.Second)
	w.until("its return", func() bool {
		c1.put(wire.HeartbeatKey, []byte("now"))
		return w.forecast("c1").State == disconnect.Keep || time.Now().After(end)
	})
	if got := w.selected(1); got != "c1 c2 c3" {
		t.Errorf("traffic goes to %s", got)
	}
}

func TestARemovedClusterIsForgottenByThePolicy(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	w, c1, _, _ := policed(t, delays(time.Second, 2*time.Second))
	c1.etcd.Kill(t)
	w.standsAt("c1", disconnect.Withdraw)
	must(t, os.Remove(filepath.Join(w.dir, "c1")))
	w.gone("c1")
	c1.etcd.Restart(t)
	c1.join()
	w.inState("c1", remotecluster.Ready)
	w.backendsAre(1, "c1 10.1.0.1, c2 10.2.0.1, c3 10.3.0.1")
	w.standsAt("c1", disconnect.Keep)
	w.until("nothing held against c1", func() bool { return w.forecast("c1").Why == "" })
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
