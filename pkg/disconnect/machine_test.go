package disconnect

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/scripttest"
)

var update = flag.Bool("update", false, "write what the scripts of testdata come to into them")

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const patience = 30 * time.Second

// TestScripts runs the scripts of testdata. Each begins with the meaning of its lines.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripttest.Run(t, *update, func() scripttest.Player { return new(mesh) })
}

// mesh drives a machine with clusters that are up or down, in virtual time.
type mesh struct {
	m             *Machine
	now           time.Time
	ev, forgotten map[string]Evidence
	down          map[string]bool
	silent        map[string]bool // its heartbeat does not arrive
	said          strings.Builder
}

// Do implements [scripttest.Player].
func (m *mesh) Do(line string) error {
	words := strings.Fields(line)
	verb, args := words[0], words[1:]
	if verb == "mesh" {
		return m.begin(args)
	}
	for _, arg := range args {
		switch verb {
		case "down", "up":
			m.down[arg] = verb == "down"
		case "silent", "heard":
			m.silent[arg] = verb == "silent"
		case "never-synced":
			m.ev[arg], m.down[arg] = Evidence{}, true
		case "never-heard":
			m.ev[arg], m.silent[arg] = Evidence{Synced: true}, true
		case "reconnects":
			e := m.ev[arg]
			e.Connected = m.now
			m.ev[arg] = e
		case "leaves":
			m.forgotten[arg] = m.ev[arg]
			delete(m.ev, arg)
		case "returns":
			m.ev[arg] = m.forgotten[arg]
		case "pass", "unseen", "patience":
			d, err := time.ParseDuration(arg)
			if err != nil {
				return err
			}
			m.spend(verb, d)
		case "show":
			m.show(arg)
		default:
			return fmt.Errorf("there is no event %q", verb)
		}
	}
	return nil
}

func (m *mesh) begin(args []string) error {
	delays := make(map[string]string)
	*m = mesh{now: epoch, ev: make(map[string]Evidence), forgotten: make(map[string]Evidence), down: make(map[string]bool), silent: make(map[string]bool)}
	for _, arg := range args {
		if delay, value, is := strings.Cut(arg, "="); is {
			delays[delay] = value
		} else {
			m.ev[arg] = Evidence{Synced: true, Connected: epoch}
		}
	}
	p, err := ParsePolicy(delays)
	m.m = New(p, patience)
	m.look()
	return err
}

// spend advances the time, with a step of the machine each second or with none.
func (m *mesh) spend(how string, d time.Duration) {
	switch how {
	case "patience":
		m.m.SetPatience(d)
	case "unseen":
		m.now = m.now.Add(d)
	default:
		for range int(d / time.Second) {
			m.now = m.now.Add(time.Second)
			m.look()
		}
	}
}

// look steps the machine once. Clusters that are up are confirmed, and their heartbeats received, at this time.
func (m *mesh) look() {
	for name, e := range m.ev {
		switch {
		case m.down[name]:
			e.Fresh, e.Connected, e.Error = false, time.Time{}, "no answer"
		default:
			if e.Connected.IsZero() {
				e.Connected = m.now
				if !e.Heartbeat.IsZero() {
					e.Heartbeat = m.now // the key exists, unchanged
				}
			}
			e.Fresh, e.AsOf, e.Error = true, m.now, ""
			if !m.silent[name] {
				e.Heartbeat = m.now
				e.HeartbeatRevision++
			}
		}
		m.ev[name] = e
	}
	done, _ := m.m.Step(m.now, m.ev)
	for _, tr := range done {
		fmt.Fprintf(&m.said, "%s %s %s\n", m.now.Sub(epoch), tr.Cluster, tr.To)
	}
}

// show prints the present and the next state of a cluster.
func (m *mesh) show(name string) {
	o, known := m.m.Forecast(name)
	if !known {
		fmt.Fprintf(&m.said, "%s is not known\n", name)
		return
	}
	fmt.Fprintf(&m.said, "%s: %s", name, o.State)
	if !o.NextAt.IsZero() {
		fmt.Fprintf(&m.said, ", %s at %s", o.Next, o.NextAt.Sub(epoch))
	}
	if !o.Held.IsZero() {
		fmt.Fprintf(&m.said, ", held since %s for %d of %d", o.Held.Sub(epoch), o.Failing, o.Judged)
	}
	if o.Why != "" {
		fmt.Fprintf(&m.said, ": %s", o.Why)
	}
	m.said.WriteString("\n")
}

// Said implements [scripttest.Player].
func (m *mesh) Said() string {
	defer m.said.Reset()
	return m.said.String()
}

// TestNextIsWhenItHappens: stepping only at the returned times misses no transition.
func TestNextIsWhenItHappens(t *testing.T) {
	t.Parallel()
	m := New(DefaultPolicy(), time.Hour) // long, so that an hour without a step does not count as blindness
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
