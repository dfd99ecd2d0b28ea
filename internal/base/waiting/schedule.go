package waiting

import "time"

// Schedule is a common schedule of many goroutines of a process. Hundreds of goroutines that work now and then, each
// at its own time, wake up a sleeping process hundreds of times, which costs more than their work. With a schedule,
// the process is woken up once. Two processes have different schedules unless they began at the same moment. A nil
// *Schedule is none. It may be used by several goroutines.
type Schedule struct {
	began time.Time
	every time.Duration
}

// NewSchedule returns a schedule that begins now.
func NewSchedule(every time.Duration) *Schedule { return &Schedule{time.Now(), every} }

// Nearest returns the time until the moment of the schedule that is nearest to d from now, and
// at least half an interval away.
func (s *Schedule) Nearest(d time.Duration) time.Duration {
	if s == nil {
		return d
	}
	return nearest(time.Since(s.began), d, s.every)
}

// nearest is Nearest at a moment, given by its time since the begin of the schedule.
func nearest(now, d, every time.Duration) time.Duration {
	return (now + max(d, every)).Round(every) - now
}
