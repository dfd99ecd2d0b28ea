package follow

import (
	"slices"
	"time"
)

// arrivals remembers when revisions came, as far as it is cheap: the last list, and
// the latest batches. It is pure.
type arrivals struct {
	listed arrival
	// latest are batches behind the list, ascending by revision; the oldest ones go.
	latest []arrival
}

// arrival: everything up to the revision was there at this time.
type arrival struct {
	revision int64
	at       time.Time
}

// maxArrivals bounds what is remembered of one prefix; the time of what came
// before is then the time of the oldest, which is later.
const maxArrivals = 32

// list forgets everything: a list at a revision was complete.
func (a *arrivals) list(revision int64, at time.Time) {
	*a = arrivals{listed: arrival{revision, at}, latest: a.latest[:0]}
}

func (a *arrivals) batch(revision int64, at time.Time) {
	if len(a.latest) == maxArrivals {
		a.latest = slices.Delete(a.latest, 0, maxArrivals/2) // half at a time: rarely
	}
	a.latest = append(a.latest, arrival{revision, at})
}

// of is when a revision had arrived at the latest; zero when it has not, or that was
// before everything that is remembered.
func (a *arrivals) of(revision int64) time.Time {
	if revision <= a.listed.revision {
		return a.listed.at
	}
	i, _ := slices.BinarySearchFunc(a.latest, revision, func(one arrival, revision int64) int {
		return int(max(-1, min(1, one.revision-revision)))
	})
	if i == len(a.latest) {
		return time.Time{}
	}
	return a.latest[i].at
}
