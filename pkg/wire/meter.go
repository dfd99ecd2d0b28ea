package wire

const (
	// MaxCost bounds the memory of an entry, as a multiple of its size. It counts all memory that reading the
	// entry allocates, including garbage and the memory of the tables. Valid entries of real clusters stay far
	// below.
	MaxCost = 16
	// MinCharged is the size that is assumed for a smaller entry: an entry with dozens of labels of a few
	// letters takes much more memory than its size.
	MinCharged = 4096
	// costEntry is the cost of every entry, in addition to that of its contents.
	costEntry = 2048
)

// meter bounds the memory of one entry by its size. Each part is charged before it is built. The charge is an
// upper bound of the memory of the part here and in the tables.
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

// costText returns the memory of a string of n bytes, without its header.
func costText(n int) int { return n + n/8 + 8 }
