package waiting

import "testing"

// TestSignal: however often it is given before it is received, it wakes up once.
func TestSignal(t *testing.T) {
	t.Parallel()
	s := NewSignal()
	s.Notify()
	s.Notify()
	<-s
	select {
	case <-s:
		t.Error("it woke up twice")
	default:
	}
}
