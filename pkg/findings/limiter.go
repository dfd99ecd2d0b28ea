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

// Events that a remote can cause without limit are limited for each cluster: first a burst, then one in each interval,
// with the number of omitted events. The present state is always in the conflicts and in the status.
const (
	eventBurst    = 20
	eventInterval = time.Minute
)

// limiter bounds the events that a cluster can cause at will. Its zero value is ready to use; it is used by one
// goroutine.
type limiter struct {
	of map[party]*allowance
}

// party is a cluster, alone or with others, and the topic of its events. Each party has its own allowance: frequent
// conflicts of a cluster do not hide events about this cluster alone, and frequent reconnects do not hide its
// conflicts.
type party struct {
	cluster string
	among   bool
	about   topic
}

// topic is a group of events with a common allowance.
type topic uint8

const (
	unbounded topic = iota // events that the operators of the agent cause, and events about all clusters
	claimed                // events about the data of the cluster, and about conflicts with it
	connected              // events about its sessions, and about its state, which follows from them
	used                   // events about the use of its service backends
)

// allowance is how many events of a party may still be reported.
type allowance struct {
	left    *rate.Limiter
	omitted int   // since the last reported event
	latest  Event // of the omitted events; the latest state event if there is one
}

// topic returns the topic of the event.
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

// state reports whether the event is that a cluster has reached another state. Removal does not count: only operators
// of the agent cause it.
func (e *Event) state() bool {
	state, is := strings.CutPrefix(e.Kind, "cluster-")
	switch remotecluster.State(state) {
	case remotecluster.Connecting, remotecluster.Syncing, remotecluster.Ready, remotecluster.Degraded, remotecluster.Failed:
		return is
	}
	return false
}

// pick returns the events to report, followed by the latest omitted event of each party that has room again.
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

// allows reports whether the event is reported, and how many were omitted before it. The allowance of one of the
// clusters that it concerns is enough: a cluster that is in conflict with all others uses up its own allowance, and
// does not block theirs.
func (l *limiter) allows(now time.Time, e *Event) (omitted int, yes bool) {
	concerned := l.concerned(e)
	for _, a := range concerned {
		yes = a.left.AllowN(now, 1) || yes
	}
	if !yes {
		// A state event replaces another latest event, but not the other way round: the state is more important.
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

// due reports whether overdue would return an event.
func (l *limiter) due(now time.Time) bool {
	for _, a := range l.of {
		if a.omitted > 0 && a.left.TokensAt(now) >= 1 {
			return true
		}
	}
	return false
}

// overdue returns the latest omitted event of each party that has room again, so that the final state is reported.
// Parties with their full allowance are deleted.
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

// after returns the event with the number of events that were omitted before it.
func (e Event) after(omitted int) Event {
	if omitted > 0 {
		e.Message += fmt.Sprintf(" (%d similar events of these clusters were not shown)", omitted)
		e.Evidence = maps.Clone(e.Evidence)
		e.Evidence["untold"] = strconv.Itoa(omitted)
	}
	return e
}
