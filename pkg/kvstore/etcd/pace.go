package etcd

import (
	"math/rand/v2"
	"time"
)

// The shortest pauses between the beginnings of two connections of one session, when
// the first of them failed or ended soon. gRPC has no pause after a connection that was
// made: a server that ends each at once would be asked again a thousand times a second.
const (
	paceMin    = 100 * time.Millisecond
	paceFactor = 1.6 // as gRPC's own pauses grow, which begin with longer ones: after a failure these add nothing
)

// pace keeps the connections of one session apart. The zero value has made none.
type pace struct {
	last  time.Time // when the last connection was begun
	pause time.Duration
}

// due returns how long the next connection has to wait, with a longest pause. When the last one
// was begun longer ago than twice that, it counts as the first. A wait is up to half as long
// again, so that many do not come at the same moment.
func (p *pace) due(now time.Time, longest time.Duration) time.Duration {
	longest = max(longest, paceMin)
	since := now.Sub(p.last)
	switch {
	case p.last.IsZero() || since > 2*longest:
		p.pause = 0
		return 0
	case p.pause == 0:
		p.pause = paceMin
	default:
		p.pause = min(time.Duration(float64(p.pause)*paceFactor), longest)
	}
	return max(0, p.pause+rand.N(p.pause/2)-since)
}
