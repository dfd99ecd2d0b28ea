package waiting_test

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	var c waiting.Counter
	isClosed := func(ch <-chan struct{}) bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
	first, second := c.Changed(0), c.Changed(0)
	if isClosed(first) || isClosed(second) {
		t.Error("a change before the first")
	}
	c.Add()
	if !isClosed(first) || !isClosed(second) || c.Count() != 1 {
		t.Errorf("a change wakes up all goroutines that wait: %d changes", c.Count())
	}
	if !isClosed(c.Changed(0)) {
		t.Error("a change before the call is a change")
	}
	if isClosed(c.Changed(1)) {
		t.Error("a known change is no change")
	}
}
