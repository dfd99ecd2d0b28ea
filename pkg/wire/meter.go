package wire

const (
	// MaxCost is how many times its own size the memory of an entry may be, with
	// what the tables keep of it: all memory that reading it allocates, garbage
	// included. Entries that somebody means stay far below.
	MaxCost = 16
	// MinCharged is the size that a smaller entry is taken for: one with dozens
	// labels of a few letters takes much more than it has bytes.
	MinCharged = 4096
	// costEntry is what every entry costs, whatever it holds.
	costEntry = 2048
)

// meter bounds the memory of one entry by what was read of it. Each part is charged before it is
// built. The charge is an upper bound of what the part takes here and in the tables.
type meter struct {
	read, left int
}

// newMeter returns the meter of an entry of this size, unpacked.
func newMeter(read int) meter {
	return meter{read: read, left: MaxCost*max(read, MinCharged) - costEntry}
}

// take charges n bytes of memory.
func (m *meter) take(n int) error {
	if m.left -= n; m.left < 0 {
		return reject(ReasonTooLarge, "its parts are so small and many that it would take more than %d times its %d bytes of memory",
			MaxCost, m.read)
	}
	return nil
}

// costText is what a string of n bytes takes, beside its header.
func costText(n int) int { return n + n/8 + 8 }
