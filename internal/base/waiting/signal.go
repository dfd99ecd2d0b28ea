package waiting

// Signal wakes up the one goroutine that receives from it. It is made with room for one element: a signal that is
// given several times before it is received wakes the goroutine up once.
type Signal chan struct{}

// NewSignal returns a signal that was not given yet.
func NewSignal() Signal { return make(Signal, 1) }

// Give wakes up the receiver, now or at its next receive. It never blocks.
func (s Signal) Give() {
	select {
	case s <- struct{}{}:
	default: // it was given already
	}
}
