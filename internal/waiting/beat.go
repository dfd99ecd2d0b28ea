package waiting

import "time"

// Beat is a rhythm that much of a process has in common. What hundreds of
// goroutines do now and then, each in a time of its own, wakes up a sleeping process
// hundreds of times, and that costs more than what they do; on a common beat it is
// woken up once. Two processes have different beats unless they began at the same
// moment.
//
// A nil *Beat is none. It may be used by several goroutines.
type Beat struct {
	began time.Time
	every time.Duration
}

// NewBeat returns a beat that begins now.
func NewBeat(every time.Duration) *Beat { return &Beat{time.Now(), every} }

// Nearest returns the time until the beat that is nearest to d from now, and at
// least half a beat away.
func (b *Beat) Nearest(d time.Duration) time.Duration {
	if b == nil {
		return d
	}
	return nearest(time.Since(b.began), d, b.every)
}

// nearest is Nearest at a moment, which is given by its time since a beat.
func nearest(now, d, every time.Duration) time.Duration {
	return (now + max(d, every)).Round(every) - now
}
