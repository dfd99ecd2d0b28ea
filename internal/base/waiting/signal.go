package waiting

// Signal wakes up the one goroutine that receives from it. It is made with room for one element: a signal that is
// notified several times before it is received wakes the goroutine up once.
type Signal chan struct{}

// NewSignal returns a signal that was not notified yet.
func NewSignal() Signal { return make(Signal, 1) }

// Notify wakes up the receiver, now or at its next receive. It never blocks.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default: // it was notified already
	}
}
