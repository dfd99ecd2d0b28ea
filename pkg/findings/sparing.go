package findings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/time/rate"
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

// party is a cluster, by itself or among others: who disagrees with others all the
// time does not hide what one of these does by itself.
type party struct {
	cluster string
	among   bool
}

// allowance is what may still be told of a party.
type allowance struct {
	left   *rate.Limiter
	untold int   // since something was told last
	latest Event // of the untold ones
}

// bounded tells whether a cluster can cause such events at will. The others follow
// from sessions, which have pauses.
func (e *Event) bounded() bool {
	switch e.Kind {
	case "conflict", "conflict-changed", resolved, "cluster-id-changed", "entries-rejected", "entries-accepted":
		return len(e.Clusters) > 0
	}
	return false
}

// pick returns those of the events that are to be told, and after them the latest
// of those that were left out before, where there is room for it by now.
func (s *sparing) pick(now time.Time, happened []Event) []Event {
	var told []Event
	for _, e := range happened {
		if !e.bounded() {
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
// One is enough of those whom it concerns: a cluster that disagrees with everybody
// takes nobody's voice in what it has no part in.
func (s *sparing) allows(now time.Time, e *Event) (untold int, yes bool) {
	concerned := s.concerned(e)
	for _, a := range concerned {
		yes = a.left.AllowN(now, 1) || yes
	}
	if !yes {
		concerned[0].untold++
		concerned[0].latest = *e
		return 0, false
	}
	for _, a := range concerned {
		untold += a.untold
		a.untold, a.latest = 0, Event{}
	}
	return untold, true
}

func (s *sparing) concerned(e *Event) []*allowance {
	if s.of == nil {
		s.of = make(map[party]*allowance)
	}
	all := make([]*allowance, len(e.Clusters))
	for i, name := range e.Clusters {
		p := party{name, len(e.Clusters) > 1}
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
	slices.SortFunc(told, func(a, b Event) int { return slices.Compare(a.Clusters, b.Clusters) })
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
