package endpointslices

import "time"

// floorPeriod is the time in which not too much may go.
const floorPeriod = time.Minute

// floor bounds how many slices are removed while not every cluster was read: at most half of all slices within
// [floorPeriod], but always one. In the zero value no slice was removed yet. It has no clock, and only one goroutine
// may use it.
type floor struct {
	removed []time.Time // when a slice was let go, the oldest first; none is older than floorPeriod
	most    int         // slices that there were at once since the first of them was
}

// allow reports whether one more of the existing slices may be removed, and if so records the removal. While everything
// is known, it always may. The number of slices may still include one that was removed a moment ago.
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
