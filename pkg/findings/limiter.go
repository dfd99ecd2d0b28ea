package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// Events that a remote can cause as often as it likes are limited for each cluster: a
// number at once, then one in each interval, with how many were left out. What is so now
// is in the conflicts and the status all the time.
const (
	eventBurst    = 20
	eventInterval = time.Minute
)

// limiter bounds the events that a cluster can cause at will. Its zero value is
// ready to use; it belongs to one goroutine.
type limiter struct {
	of map[party]*allowance
}

// party is a cluster, by itself or among others, and what its events are about: a
// cluster that disagrees with others all the time does not hide what one of these does
// by itself, and one that reconnects all the time does not hide its conflicts.
type party struct {
	cluster string
	among   bool
	about   topic
}

// topic is what events are about that have one allowance.
type topic uint8

const (
	unbounded topic = iota // what those who run the agent cause, and what is about all clusters
	claimed                // what the cluster says, and what others say against it
	connected              // its sessions, and its state that follows from them
	used                   // whether its service backends are used
)

// allowance is how many events of a party may still be reported.
type allowance struct {
	left    *rate.Limiter
	omitted int   // since an event was reported last
	latest  Event // of the omitted ones, or the latest of a state among them
}

// topic tells what the event is about.
func (e *Event) topic() topic {
	if len(e.Clusters) == 0 {
		return unbounded
	}
	switch e.Kind {
	case "conflict", "conflict-changed", resolved, "cluster-id-changed", "entries-rejected", "entries-accepted":
		return claimed
	case "cluster-connected", "cluster-disconnected", "cluster-error", "etcd-changed":
		return connected
	case "backends-withheld", "backends-back", "cluster-demoted", "cluster-withdrawn", "cluster-restored":
		return used
	}
	if e.state() {
		return connected
	}
	return unbounded
}

// state reports whether the event is that a cluster has come to another state; not that
// it is removed, which those cause who run the agent.
func (e *Event) state() bool {
	state, is := strings.CutPrefix(e.Kind, "cluster-")
	switch remotecluster.State(state) {
	case remotecluster.Connecting, remotecluster.Syncing, remotecluster.Ready, remotecluster.Degraded, remotecluster.Failed:
		return is
	}
	return false
}

// pick returns the events that are reported, and after them the latest of those that
// were left out before, where there is room for it by now.
func (l *limiter) pick(now time.Time, happened []Event) []Event {
	var reported []Event
	for _, e := range happened {
		if e.topic() == unbounded {
			reported = append(reported, e)
		} else if omitted, yes := l.allows(now, &e); yes {
			reported = append(reported, e.after(omitted))
		}
	}
	return append(reported, l.overdue(now)...)
}

// allows reports whether the event is reported, and how many were left out before it.
// The allowance of one of the clusters that it concerns is enough: a cluster that
// disagrees with all others uses up its own, and none of theirs.
func (l *limiter) allows(now time.Time, e *Event) (omitted int, yes bool) {
	concerned := l.concerned(e)
	for _, a := range concerned {
		yes = a.left.AllowN(now, 1) || yes
	}
	if !yes {
		// The state of a cluster is more than how it came to it.
		if a := concerned[0]; e.state() || !a.latest.state() {
			a.latest = *e
		}
		concerned[0].omitted++
		return 0, false
	}
	for _, a := range concerned {
		omitted += a.omitted
		a.omitted, a.latest = 0, Event{}
	}
	return omitted, true
}

func (l *limiter) concerned(e *Event) []*allowance {
	if l.of == nil {
		l.of = make(map[party]*allowance)
	}
	all := make([]*allowance, len(e.Clusters))
	for i, name := range e.Clusters {
		p := party{name, len(e.Clusters) > 1, e.topic()}
		if l.of[p] == nil {
			l.of[p] = &allowance{left: rate.NewLimiter(rate.Every(eventInterval), eventBurst)}
		}
		all[i] = l.of[p]
	}
	return all
}

// due reports whether overdue has anything.
func (l *limiter) due(now time.Time) bool {
	for _, a := range l.of {
		if a.omitted > 0 && a.left.TokensAt(now) >= 1 {
			return true
		}
	}
	return false
}

// overdue is the latest event that was left out of each party, where there is room: what comes to
// rest is reported as it is then. What has its whole allowance again is forgotten.
func (l *limiter) overdue(now time.Time) []Event {
	var events []Event
	for p, a := range l.of {
		if a.omitted > 0 && a.left.AllowN(now, 1) {
			events = append(events, a.latest.after(a.omitted-1))
			a.omitted, a.latest = 0, Event{}
		}
		if a.omitted == 0 && a.left.TokensAt(now) >= eventBurst {
			delete(l.of, p)
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(slices.Compare(a.Clusters, b.Clusters), strings.Compare(a.Kind, b.Kind))
	})
	return events
}

// after is the event with how many were left out before it.
func (e Event) after(omitted int) Event {
	if omitted > 0 {
		e.Message += fmt.Sprintf(" (%d similar events of these clusters were not shown)", omitted)
		e.Evidence = maps.Clone(e.Evidence)
		e.Evidence["untold"] = strconv.Itoa(omitted)
	}
	return e
}
