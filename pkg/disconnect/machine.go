package disconnect

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Machine applies the policy.
type Machine struct {
	policy   Policy
	patience time.Duration
	clusters map[string]*cluster

	last            time.Time // of the last step
	held            time.Time // since when the policy is held; zero while it is not
	resumed         time.Time // the last step after a gap in observation
	failing, judged int       // how many clusters are doubtful, and how many are judged
}

// cluster is the machine's record of one cluster. At most one of good and doubted is set.
type cluster struct {
	delays  Delays
	state   State
	since   time.Time // of the state
	ev      Evidence
	known   time.Time // until when all was well: the latest AsOf, moved later by gaps in observation
	heard   time.Time // the same for the heartbeat
	fresh   time.Time // since when Fresh is true without a break; zero while it is not
	good    time.Time // since when the evidence is good without a break; zero while it is not
	doubted time.Time // since when it is doubtful; zero while it is not
	silence time.Time // when it was demoted for its silence; zero after its next heartbeat
	before  int64     // the HeartbeatRevision at that time
}

// New returns a machine without clusters. Patience is how long a doubt must last before it has an effect; in this time,
// every cluster is probed.
func New(p Policy, patience time.Duration) *Machine {
	return &Machine{policy: p, patience: patience, clusters: make(map[string]*cluster)}
}

// SetPatience changes the patience, from the next step on: the more nodes the own cluster has, the less often each node
// probes.
func (m *Machine) SetPatience(to time.Duration) { m.patience = to }

// Step takes the present evidence about all clusters and returns their transitions, sorted by cluster: at most one for
// each. Next is when the next one is due if the evidence does not change, zero for never; the caller must call Step
// then, or sooner. A cluster without evidence is deleted, and begins at [Keep] when it returns.
func (m *Machine) Step(now time.Time, evidence map[string]Evidence) (transitions []Transition, next time.Time) {
	m.look(now, evidence)
	m.count(now)
	for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
		c := m.clusters[name]
		to, at := m.plan(c)
		if !at.IsZero() && !now.Before(at) {
			transitions = append(transitions, Transition{Cluster: name, From: c.state, To: to, Why: c.why()})
			c.move(to, now)
			_, at = m.plan(c)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return transitions, next
}

// move changes the state.
func (c *cluster) move(to State, now time.Time) {
	if to == Demote && c.state == Keep && c.ev.Fresh {
		c.silence, c.before = now, c.ev.HeartbeatRevision
	}
	c.state, c.since = to, now
}

// Forget deletes the evidence against a cluster: it begins at [Keep].
func (m *Machine) Forget(cluster string) { delete(m.clusters, cluster) }

// look updates all clusters with the evidence.
func (m *Machine) look(now time.Time, evidence map[string]Evidence) {
	blind := max(0, now.Sub(m.last)-m.patience)
	if m.last.IsZero() {
		blind = 0
	}
	if m.last = now; blind > 0 {
		m.resumed = now
	}
	maps.DeleteFunc(m.clusters, func(name string, _ *cluster) bool { _, there := evidence[name]; return !there })
	for name, ev := range evidence {
		c := m.clusters[name]
		if c == nil {
			c = &cluster{delays: m.policy.Of(name), since: now}
			m.clusters[name] = c
		}
		c.look(now, ev, blind)
		c.judge(now, m.patience)
	}
}

// look updates the cluster with the evidence, and does not count a gap in observation (blind) against it.
func (c *cluster) look(now time.Time, ev Evidence, blind time.Duration) {
	if blind > 0 {
		c.known, c.heard = shifted(c.known, blind), shifted(c.heard, blind)
		c.fresh, c.good = time.Time{}, time.Time{}
	}
	c.ev = ev
	c.known, c.heard = latest(c.known, ev.AsOf), latest(c.heard, ev.Heartbeat)
	if ev.Heartbeat.After(c.silence) && ev.HeartbeatRevision != c.before {
		c.silence = time.Time{}
	}
	switch {
	case !ev.Fresh:
		c.fresh = time.Time{}
	case c.fresh.IsZero():
		c.fresh = now
	default:
		c.fresh = latest(c.fresh, ev.Connected) // the session was interrupted between two looks
	}
}

// judge classifies the evidence, and records the beginning of this state.
func (c *cluster) judge(now time.Time, patience time.Duration) {
	good, doubtful := false, false
	switch {
	case !c.ev.Synced:
	case c.ev.Fresh:
		doubtful = c.quiet(now)
		good = !doubtful
	default:
		doubtful = now.Sub(c.known) > patience
	}
	c.good, c.doubted = since(c.good, good, now), since(c.doubted, doubtful, now)
	if good {
		c.good = latest(c.good, c.fresh)
	}
}

// since returns the time since when a condition holds: as before, or now; zero if it does not hold.
func since(before time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// quiet reports whether no heartbeat came for half of the allowed silence. A cluster demoted for its silence remains
// quiet until its heartbeat changes: a new session proves nothing.
func (c *cluster) quiet(now time.Time) bool {
	d := c.delays.Silence
	return !c.silence.IsZero() || d > 0 && !c.heard.IsZero() && now.Sub(c.lastWord()) > d/2
}

// lastWord returns the time from which a missing heartbeat counts: no heartbeat could be read before the cluster
// answered.
func (c *cluster) lastWord() time.Time { return latest(c.heard, c.fresh) }

// count updates whether the policy is held.
func (m *Machine) count(now time.Time) {
	m.failing, m.judged = 0, 0
	for _, c := range m.clusters {
		if c.ev.Synced {
			m.judged++
		}
		if !c.doubted.IsZero() {
			m.failing++
		}
	}
	hold := m.judged >= 2 && 2*m.failing > m.judged
	switch {
	case hold && m.held.IsZero():
		m.held = now
	case !hold && !m.held.IsZero():
		m.held, m.resumed = time.Time{}, now
	}
}

// plan returns the next state of a cluster if its evidence does not change, and the time; a zero time means no
// transition.
func (m *Machine) plan(c *cluster) (to State, at time.Time) {
	d := c.delays
	switch {
	case !c.good.IsZero():
		if c.state != Keep {
			return Keep, latest(c.good, c.since).Add(d.Restore)
		}
	case c.doubted.IsZero():
	case c.ev.Fresh: // it answers, but its writer is silent
		switch {
		case c.state == Withdraw:
			return Demote, latest(c.fresh, c.since).Add(d.Restore)
		case c.state == Keep && m.held.IsZero():
			return Demote, latest(c.lastWord().Add(d.Silence), m.unchangedAt(c))
		}
	case !m.held.IsZero():
	case c.state == Keep && d.Demote > 0:
		return Demote, latest(c.known.Add(d.Demote), m.unchangedAt(c))
	case c.state != Withdraw && d.Withdraw > 0:
		return Withdraw, latest(c.known.Add(d.Withdraw), m.unchangedAt(c))
	}
	return c.state, time.Time{}
}

// unchangedAt returns the time at which nothing has changed for as long as the patience.
func (m *Machine) unchangedAt(c *cluster) time.Time {
	return latest(c.doubted, latest(c.since, m.resumed)).Add(m.patience)
}

// why describes the evidence for users; empty when all is well.
func (c *cluster) why() string {
	switch {
	case !c.ev.Synced:
		return ""
	case !c.good.IsZero() && c.state != Keep:
		return fmt.Sprintf("confirmed again without a break since %s", at(c.good))
	case c.ev.Fresh && !c.doubted.IsZero():
		return fmt.Sprintf("its etcd answers, but its heartbeat has been missing since %s", at(c.heard))
	case !c.ev.Fresh:
		why := fmt.Sprintf("its services could not be confirmed since %s", at(c.ev.AsOf))
		if c.ev.Error != "" {
			why += ": " + c.ev.Error
		}
		return why
	}
	return ""
}

// Forecast returns the state of a cluster at the last step, and the next one; false for an unknown cluster.
func (m *Machine) Forecast(name string) (Forecast, bool) {
	c := m.clusters[name]
	if c == nil {
		return Forecast{}, false
	}
	o := Forecast{
		State: c.state, Since: c.since, Why: c.why(), Doubtful: !c.doubted.IsZero(), Held: m.held, Evidence: c.ev,
		Failing: m.failing, Judged: m.judged,
	}
	o.Next, o.NextAt = m.plan(c)
	return o, true
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shifted returns a time moved later by a duration that does not count; zero stays zero.
func shifted(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// at formats a time.
func at(moment time.Time) string {
	if moment.IsZero() {
		return "the start"
	}
	return moment.UTC().Format(time.RFC3339)
}
