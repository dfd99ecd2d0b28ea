package mirror

import (
	"slices"
	"time"
)

// spending remembers how much had been put in all at moments of the past, the last
// one last.
type spending []spent

type spent struct {
	at    time.Time
	bytes int64
}

// spendingMost bounds how many moments are remembered.
const spendingMost = 128

// note remembers how much was put until now.
func (s *spending) note(now time.Time, bytes int64) {
	*s = append(*s, spent{now, bytes})
	if len(*s) <= spendingMost {
		return
	}
	n := 0
	*s = slices.DeleteFunc(*s, func(spent) bool { n++; return n%2 == 0 })
}

// until is how much had been put at some moment: at the last one remembered that was
// not after it, so it is rather too little than too much. What was before is forgotten.
func (s *spending) until(at time.Time) int64 {
	i := 0
	for i+1 < len(*s) && !(*s)[i+1].at.After(at) {
		i++
	}
	*s = slices.Delete(*s, 0, i)
	if len(*s) == 0 {
		return 0
	}
	return (*s)[0].bytes
}
