package endpointslices

import "time"

// floorPeriod is the time in which not too much may go.
const floorPeriod = time.Minute

// floor bounds what is removed while not everything is known: at most half of all slices within
// [floorPeriod], but one always. The zero value has let nothing go. It has no clock and is not for
// several goroutines.
type floor struct {
	removed []time.Time // when a slice was let go, the oldest first; none is older than floorPeriod
	most    int         // slices that there were at once since the first of them was
}

// allow reports whether one more slice may be removed of those that there are, and notes that it is.
// While everything is known it always may. What was removed a moment ago may still be counted.
func (f *floor) allow(now time.Time, slices int, known bool) bool {
	for len(f.removed) > 0 && now.Sub(f.removed[0]) >= floorPeriod {
		f.removed = f.removed[1:]
	}
	if len(f.removed) == 0 {
		f.most = 0
	}
	f.most = max(f.most, slices)
	if !known && len(f.removed)+1 > max(1, f.most/2) {
		return false
	}
	f.removed = append(f.removed, now)
	return true
}
