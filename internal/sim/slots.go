package sim

// slots hands out room on leases. A slot stands for one lease; the writer
// grants the leases as slots come into being. It is a pure state machine.
type slots struct {
	limit int   // keys per slot, at least 1
	used  []int // keys on each slot, 0 <= used[i] <= limit
	free  []int32
	// marked[i] tells that slot i is in free, which holds each slot once.
	marked []bool
}

func newSlots(limit int) *slots { return &slots{limit: max(limit, 1)} }

// take returns a slot with room for one more key.
func (s *slots) take() int32 {
	for len(s.free) > 0 {
		i := s.free[len(s.free)-1]
		if s.used[i] < s.limit {
			s.used[i]++
			return i
		}
		s.free = s.free[:len(s.free)-1]
		s.marked[i] = false
	}
	s.used = append(s.used, 1)
	i := int32(len(s.used) - 1)
	s.free = append(s.free, i)
	s.marked = append(s.marked, true)
	return i
}

// give returns the room of one key.
func (s *slots) give(i int32) {
	s.used[i]--
	if !s.marked[i] {
		s.free = append(s.free, i)
		s.marked[i] = true
	}
}

// count is how many slots there are.
func (s *slots) count() int { return len(s.used) }
