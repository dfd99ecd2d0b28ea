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
	f, known := w.set.Find(name)
	if !known {
		return Found{}, false
	}
	if f.Key = w.prefix; strings.HasSuffix(w.prefix, "/") {
		f.Key += name
	}
	f.Read = w.follower.ReadBy(f.Revision)
	return f, true
}

// Find tells what is known of a key: its revision, and whether it counts.
func (s *Set[T]) Find(name string) (Found, bool) {
	p, known := s.records.FindString(name)
	if !known {
		return Found{}, false
	}
	r := s.records.At(p)
	refused := s.rejected[name]
	return Found{Revision: r.Rev, InForce: r.Obj != nil, Reason: refused.reason, Why: s.examples[name]}, true
}
