package disconnect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const patience = 30 * time.Second

// mesh drives a machine with clusters that are up or down, in virtual time.
type mesh struct {
	t    *testing.T
	m    *Machine
	now  time.Time
	ev   map[string]Evidence
	down map[string]bool
	mute map[string]bool // its heartbeat stays away
	log  []string        // what happened, as "1m30s c1 demote"
}

func newMesh(t *testing.T, p Policy, clusters ...string) *mesh {
	m := &mesh{t: t, m: New(p, patience), now: epoch, ev: map[string]Evidence{}, down: map[string]bool{}, mute: map[string]bool{}}
	for _, c := range clusters {
		m.ev[c] = Evidence{Synced: true, Connected: epoch}
	}
	m.look()
	return m
}

// look steps once. Clusters that are up are confirmed and heard at this moment.
func (m *mesh) look() {
	for name, e := range m.ev {
		switch {
		case m.down[name]:
			e.Fresh, e.Connected, e.Error = false, time.Time{}, "no answer"
		default:
			if e.Connected.IsZero() {
				e.Connected = m.now
				if !e.Heartbeat.IsZero() {
					e.Heartbeat = m.now // the key is found, as it was
				}
			}
			e.Fresh, e.AsOf, e.Error = true, m.now, ""
			if !m.mute[name] {
				e.Heartbeat = m.now
				e.HeartbeatRevision++
			}
		}
		m.ev[name] = e
	}
	done, _ := m.m.Step(m.now, m.ev)
	for _, tr := range done {
		m.log = append(m.log, fmt.Sprintf("%s %s %s", m.now.Sub(epoch), tr.Cluster, tr.To))
	}
}

// pass lets time pass, with a look each second.
func (m *mesh) pass(d time.Duration) {
	for range int(d / time.Second) {
		m.now = m.now.Add(time.Second)
		m.look()
	}
}

func (m *mesh) happened(want ...string) {
	m.t.Helper()
	if !slices.Equal(m.log, want) {
		m.t.Errorf("%q\nwant %q", m.log, want)
	}
	m.log = nil
}

func (m *mesh) outlook(name string) Outlook {
	o, _ := m.m.Outlook(name)
	return o
}

func TestAClusterThatIsGoneIsDemotedThenWithdrawnAndReturnsAfterRestore(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.down["c1"] = true
	m.pass(time.Minute)
	o := m.outlook("c1")
	if o.State != Keep || o.Next != Demote || o.NextAt.Sub(epoch) != 2*time.Minute || !strings.Contains(o.Why, "since 2026-11-21T12:00:00Z: no answer") {
		t.Errorf("the outlook is %+v", o)
	}
	m.pass(time.Hour)
	m.happened("2m0s c1 demote", "15m0s c1 withdraw")
	if o := m.outlook("c1"); o.State != Withdraw || !o.NextAt.IsZero() {
		t.Errorf("the outlook is %+v", o)
	}
	m.down["c1"] = false
	m.pass(time.Second)
	if o := m.outlook("c1"); o.Next != Keep || o.NextAt.Sub(m.now) != 30*time.Second || !strings.Contains(o.Why, "confirmed again") {
		t.Errorf("the outlook is %+v", o)
	}
	m.pass(time.Hour)
	m.happened("1h1m31s c1 keep")
	if o := m.outlook("c1"); o.Why != "" || !o.NextAt.IsZero() {
		t.Errorf("the outlook is %+v", o)
	}
}

func TestWhoComesAndGoesDoesNotFlap(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	for range 20 { // away for less than the delay, again and again
		m.down["c1"] = true
		m.pass(110 * time.Second)
		m.down["c1"] = false
		m.pass(5 * time.Second)
	}
	m.happened()
	m.down["c1"] = true
	m.pass(3 * time.Minute)
	start := m.now.Sub(epoch)
	m.happened((start - time.Minute).String() + " c1 demote")
	for range 20 { // there for less than it takes to return
		m.down["c1"] = false
		m.pass(29 * time.Second)
		m.down["c1"] = true
		m.pass(5 * time.Second)
	}
	m.happened()
	m.down["c1"] = false
	m.pass(time.Minute)
	m.happened((m.now.Sub(epoch) - 29*time.Second).String() + " c1 keep")
}

// TestABreakBetweenTwoLooks is known by the session, which is another one.
func TestABreakBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.down["c1"] = true
	m.pass(3 * time.Minute)
	m.log = nil
	m.down["c1"] = false
	m.pass(20 * time.Second)
	e := m.ev["c1"]
	e.Connected = m.now
	m.ev["c1"] = e
	m.pass(29 * time.Second)
	m.happened()
	m.pass(time.Second)
	m.happened("3m50s c1 keep")
}

func TestMoreThanHalfAtOnceIsUs(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.down["c1"], m.down["c2"] = true, true
	m.pass(24 * time.Hour)
	m.happened()
	if o := m.outlook("c3"); o.Held.Sub(epoch) != 31*time.Second || o.Failing != 2 || o.Judged != 3 {
		t.Errorf("held since %s, %d of %d", o.Held, o.Failing, o.Judged)
	}
	if o := m.outlook("c1"); !o.NextAt.IsZero() {
		t.Errorf("%s at %s, though held", o.Next, o.NextAt)
	}
	// When it is over, the one that is still away gets time for an answer, and its
	// next step as much again.
	m.down["c2"] = false
	m.pass(time.Hour)
	m.happened("24h0m31s c1 demote", "24h1m1s c1 withdraw")
	if o := m.outlook("c1"); !o.Held.IsZero() {
		t.Errorf("held since %s", o.Held)
	}
	// What is demoted returns while the policy is held, and goes no further.
	m.down["c2"], m.down["c3"] = true, true
	m.down["c1"] = false
	m.pass(time.Hour)
	m.happened("25h0m31s c1 keep")
}

func TestSmallMeshes(t *testing.T) {
	t.Parallel()
	one := newMesh(t, DefaultPolicy(), "c1")
	one.down["c1"] = true
	one.pass(20 * time.Minute)
	one.happened("2m0s c1 demote", "15m0s c1 withdraw")

	two := newMesh(t, DefaultPolicy(), "c1", "c2")
	two.down["c1"] = true
	two.pass(5 * time.Minute)
	two.happened("2m0s c1 demote")
	two.down["c2"] = true
	two.pass(time.Hour)
	two.happened()

	// A cluster that was never synced is no witness and is not judged.
	alone := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	for _, name := range []string{"c2", "c3"} {
		alone.ev[name], alone.down[name] = Evidence{}, true
	}
	alone.pass(time.Hour)
	alone.happened()
}

func TestASilentWriterOnlyDemotes(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.mute["c1"] = true
	m.pass(6 * time.Minute)
	if o := m.outlook("c1"); o.Next != Demote || o.NextAt.Sub(epoch) != 10*time.Minute || !strings.Contains(o.Why, "nothing was heard") {
		t.Errorf("the outlook is %+v", o)
	}
	m.pass(12 * time.Hour)
	m.down["c1"] = true // another session proves nothing
	m.pass(time.Minute)
	m.down["c1"] = false
	m.pass(12*time.Hour - time.Minute)
	m.happened("10m0s c1 demote")
	m.mute["c1"] = false
	m.pass(time.Hour)
	m.happened("24h6m31s c1 keep")

	// Nobody can be heard while the etcd is away; it counts from its return.
	m.down["c1"], m.mute["c1"] = true, true
	m.pass(20 * time.Minute)
	m.down["c1"] = false
	m.pass(time.Hour)
	m.happened("25h8m0s c1 demote", "25h21m0s c1 withdraw", "25h26m31s c1 keep", "25h36m1s c1 demote")

	// Whose heartbeat was never seen has none.
	never := newMesh(t, DefaultPolicy(), "c2")
	never.ev["c1"] = Evidence{Synced: true}
	never.mute["c1"] = true
	never.pass(time.Hour)
	never.happened()
}

// TestEveryHeartbeatStaysAway: that is no cluster's fault.
func TestEveryHeartbeatStaysAway(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.mute["c1"] = true
	m.pass(time.Minute)
	m.mute["c2"] = true
	m.pass(time.Hour)
	m.happened()
}

func TestTimeInWhichNobodyLookedDoesNotCount(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.down["c1"] = true
	m.pass(time.Minute)
	m.now = m.now.Add(time.Hour)
	m.pass(20 * time.Minute)
	m.happened("1h1m31s c1 demote", "1h14m31s c1 withdraw")
}

func TestDelaysOfOneClusterAndThoseThatAreNever(t *testing.T) {
	t.Parallel()
	p, err := ParsePolicy(map[string]string{"c1.demote": "0", "c2.withdraw": "0", "c3.demote": "0", "c3.withdraw": "0", "c1.withdraw": "1m"})
	if err != nil {
		t.Fatal(err)
	}
	m := newMesh(t, p, "c1", "c2", "c3", "c4", "c5", "c6", "c7")
	m.down["c1"], m.down["c2"], m.down["c3"] = true, true, true
	m.pass(time.Hour)
	m.happened("1m1s c1 withdraw", "2m0s c2 demote")
}

func TestWhoIsForgottenBeginsAgain(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.down["c1"] = true
	m.pass(3 * time.Minute)
	before := m.ev["c1"]
	delete(m.ev, "c1")
	m.pass(time.Second)
	if _, known := m.m.Outlook("c1"); known {
		t.Error("c1 is still known")
	}
	m.ev["c1"] = before
	m.log = nil
	m.pass(time.Second)
	if o := m.outlook("c1"); o.State != Keep {
		t.Errorf("%s", o.State)
	}
}

// TestNextIsWhenItHappens: who steps at no other time misses nothing.
func TestNextIsWhenItHappens(t *testing.T) {
	t.Parallel()
	m := New(DefaultPolicy(), time.Hour) // so that not looking is no blindness
	well := func(now time.Time) Evidence { return Evidence{Synced: true, Fresh: true, AsOf: now} }
	if _, next := m.Step(epoch, map[string]Evidence{"c1": well(epoch)}); !next.IsZero() {
		t.Errorf("next %s, and all is well", next)
	}
	now := epoch.Add(61 * time.Minute)
	gone := Evidence{Synced: true, AsOf: epoch.Add(59 * time.Minute)}
	m.Step(now.Add(-time.Minute), map[string]Evidence{"c1": gone})
	var got []string
	_, next := m.Step(epoch.Add(120*time.Minute), map[string]Evidence{"c1": gone})
	for range 5 {
		var done []Transition
		if next.IsZero() {
			break
		}
		done, next = m.Step(next, map[string]Evidence{"c1": gone})
		if len(done) != 1 {
			t.Fatalf("%d transitions when one was due", len(done))
		}
		got = append(got, done[0].From.String()+" to "+done[0].To.String())
	}
	if want := []string{"keep to demote", "demote to withdraw"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPatienceGrows: where probes are far apart, a doubt has to last longer before
// anything is done about it.
func TestPatienceGrows(t *testing.T) {
	t.Parallel()
	m := newMesh(t, DefaultPolicy(), "c1", "c2", "c3")
	m.m.SetPatience(134 * time.Second)
	m.down["c1"] = true
	m.pass(time.Hour)
	m.happened("4m29s c1 demote", "15m0s c1 withdraw") // 134 s of silence, and as long in doubt
}
