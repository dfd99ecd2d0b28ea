package mirror

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestSpendingIsNeverTakenForLess: the bytes put after a moment are never counted as less than they were, however many
// moments were removed, and hardly as more.
func TestSpendingIsNeverTakenForLess(t *testing.T) {
	t.Parallel()
	const step = lookAtRoom
	began := time.Now()
	var all []spent
	var s spending
	bytes := int64(0)
	for i := range 5000 {
		now := began.Add(time.Duration(i) * step)
		s.note(now, bytes)
		all = append(all, spent{now, bytes})
		bytes += rand.Int64N(1000)
		if i%50 != 49 {
			continue
		}
		ago := rand.IntN(40)
		is, want := s.until(now.Add(-time.Duration(ago)*step)), all[i-ago].bytes
		if is > want || want-is > 2*1000 {
			t.Fatalf("at look %d, %d looks ago: %d bytes, it was %d", i, ago, is, want)
		}
	}
	if s.until(began.Add(-time.Hour)); len(s) > spendingMost {
		t.Errorf("%d moments are remembered", len(s))
	}
	late := spending{}
	for i := range 100_000 { // our etcd does not say anything for hours
		late.note(began.Add(time.Duration(i)*step), int64(i))
	}
	if is := late.until(began.Add(3 * time.Second)); len(late) > spendingMost || is > 30 {
		t.Errorf("%d bytes, %d moments are remembered", is, len(late))
	}
}
