package contents

// Slots assigns keys to leases. A slot stands for one lease, which the writer grants when the slot is created. It is a
// pure state machine.
type Slots struct {
	limit int     // keys per slot, at least 1
	used  []int   // keys on each slot, 0 <= used[i] <= limit
	free  []int32 // slots with room
}

// Take returns a slot with room for one more key, and uses that room.
func (s *Slots) Take() int32 {
	if len(s.free) == 0 {
		s.free = append(s.free, int32(len(s.used)))
		s.used = append(s.used, 0)
	}
	last := len(s.free) - 1
	i := s.free[last]
	if s.used[i]++; s.used[i] == s.limit {
		s.free = s.free[:last]
	}
	return i
}

// Give returns the room of one key.
func (s *Slots) Give(i int32) {
	if s.used[i] == s.limit {
		s.free = append(s.free, i)
	}
	s.used[i]--
}

// Count is the number of slots.
func (s *Slots) Count() int { return len(s.used) }
