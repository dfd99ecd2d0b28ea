package mirror

import (
	"testing"
)

// TestTheCacheIsWhatTheRemotesHave: key for key and byte for byte, from the first
// copy on, through changes, and until a cluster's file is gone.
func TestTheCacheIsWhatTheRemotesHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.remote("a", 1), w.remote("b", 2)
	w.join(a)
	m := w.mirror()
	defer m.stop()
	w.equal(a)
	w.join(b)
	w.equal(a, b)
}
