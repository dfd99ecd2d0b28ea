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

// Of what a remote can make come and go as often as it likes, only so much is told
// of each cluster: a number at once, then one in each interval, with how many were
// left out. What is so now is in the conflicts and the status all the time.
const (
	sparingBurst    = 20
	sparingInterval = time.Minute
)

// sparing bounds the events that a cluster can cause at will. Its zero value is
// ready to use; it belongs to one goroutine.
type sparing struct {
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

// allowance is what may still be told of a party.
type allowance struct {
	left   *rate.Limiter
	untold int   // since something was told last
	latest Event // of the untold ones, or the latest of a state among them
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

// state tells whether the event is that a cluster has come to another state; not that
// it is removed, which those cause who run the agent.
func (e *Event) state() bool {
	state, is := strings.CutPrefix(e.Kind, "cluster-")
	switch remotecluster.State(state) {
	case remotecluster.Connecting, remotecluster.Syncing, remotecluster.Ready, remotecluster.Degraded, remotecluster.Failed:
		return is
	}
	return false
}

// pick returns those of the events that are to be told, and after them the latest
// of those that were left out before, where there is room for it by now.
func (s *sparing) pick(now time.Time, happened []Event) []Event {
	var told []Event
	for _, e := range happened {
		if e.topic() == unbounded {
			told = append(told, e)
			continue
		}
		if untold, yes := s.allows(now, &e); yes {
			told = append(told, e.after(untold))
		}
	}
	return append(told, s.overdue(now)...)
}

// allows tells whether the event is to be told, and how many were not before it.
// The allowance of one of the clusters that it concerns is enough: a cluster that
// disagrees with all others uses up its own, and none of theirs.
func (s *sparing) allows(now time.Time, e *Event) (untold int, yes bool) {
	concerned := s.concerned(e)
	for _, a := range concerned {
		yes = a.left.AllowN(now, 1) || yes
	}
	if !yes {
		concerned[0].omit(e)
		return 0, false
	}
	for _, a := range concerned {
		untold += a.untold
		a.untold, a.latest = 0, Event{}
	}
	return untold, true
}

// omit notes an event that is not told. The state of a cluster is more than how it
// came to it.
func (a *allowance) omit(e *Event) {
	a.untold++
	if e.state() || !a.latest.state() {
		a.latest = *e
	}
}

func (s *sparing) concerned(e *Event) []*allowance {
	if s.of == nil {
		s.of = make(map[party]*allowance)
	}
	all := make([]*allowance, len(e.Clusters))
	for i, name := range e.Clusters {
		p := party{name, len(e.Clusters) > 1, e.topic()}
		if s.of[p] == nil {
			s.of[p] = &allowance{left: rate.NewLimiter(rate.Every(sparingInterval), sparingBurst)}
		}
		all[i] = s.of[p]
	}
	return all
}

// due tells whether overdue has anything.
func (s *sparing) due(now time.Time) bool {
	for _, a := range s.of {
		if a.untold > 0 && a.left.TokensAt(now) >= 1 {
			return true
		}
	}
	return false
}

// overdue is the latest of what was not told of each cluster, where there is room:
// what comes to rest is told, as it is then. What has its whole allowance again is
// forgotten.
func (s *sparing) overdue(now time.Time) []Event {
	var told []Event
	for p, a := range s.of {
		if a.untold > 0 && a.left.AllowN(now, 1) {
			told = append(told, a.latest.after(a.untold-1))
			a.untold, a.latest = 0, Event{}
		}
		if a.untold == 0 && a.left.TokensAt(now) >= sparingBurst {
			delete(s.of, p)
		}
	}
	slices.SortFunc(told, func(a, b Event) int {
		return cmp.Or(slices.Compare(a.Clusters, b.Clusters), strings.Compare(a.Kind, b.Kind))
	})
	return told
}

// after is the event with how many were not told before it.
func (e Event) after(untold int) Event {
	if untold > 0 {
		e.Message += fmt.Sprintf(" (%d such events of these clusters were not told before)", untold)
		evidence := maps.Clone(e.Evidence)
		evidence["untold"] = strconv.Itoa(untold)
		e.Evidence = evidence
	}
	return e
}
