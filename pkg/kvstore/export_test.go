package kvstore

import "time"

// ProveQuorum acts as if a transaction had just been answered, and reports whether one was answered before.
func (w *EngineWriter) ProveQuorum() bool {
	return w.proved.Swap(time.Now().UnixNano()) != 0
}
