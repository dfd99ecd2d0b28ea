package store

import (
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Found is what a [Watch] knows of one key.
type Found struct {
	Key      string // the whole key
	Revision int64  // the mod revision of the value seen last
	// Read is when that value had been read at the latest; zero when that is not
	// remembered.
	Read time.Time
	// InForce tells whether a value of the key counts. It may be the one before, when
	// the last one is refused for the Reason, in words Why.
	InForce bool
	Reason  wire.Reason // empty: it is not refused
	Why     string      // empty when it is not remembered
}

// Find tells what is known of a key, by its name below the prefix; false when the
// kvstore had no such key, as far as is known. Any goroutine may call it; it waits
// while a page or a batch is being decoded.
func (w *Watch[T]) Find(name string) (Found, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	p, known := w.set.records.FindString(name)
	if !known {
		return Found{}, false
	}
	r, key := w.set.records.At(p), w.prefix
	if strings.HasSuffix(key, "/") { // else it is one whole key
		key += name
	}
	return Found{
		Key: key, Revision: r.Rev, Read: w.follower.ReadBy(r.Rev),
		InForce: r.Obj != nil, Reason: w.set.rejected[name].reason, Why: w.set.examples[name],
	}, true
}
