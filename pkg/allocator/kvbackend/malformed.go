package kvbackend

import (
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const (
	badMapping   = "mapping"
	badReference = "reference"
)

// maxMalformed bounds how many entries that cannot be read are remembered.
const maxMalformed = 1000

// malformed reports entries that cannot be read: each value of each key once, for all readers together. Of entries
// above the number that it remembers, it logs only once that there are more, and counts each one every time.
type malformed struct {
	log     *slog.Logger
	metrics *allocator.Metrics
	seed    maphash.Seed

	mu   sync.Mutex
	seen map[uint64]struct{} // hashes of keys with their values; guarded by mu
	more bool                // it was logged that there are more; guarded by mu
}

func newMalformed(log *slog.Logger, metrics *allocator.Metrics) *malformed {
	return &malformed{log: log, metrics: metrics, seed: maphash.MakeSeed(), seen: make(map[uint64]struct{})}
}

func (m *malformed) found(kind, key string, value []byte, err error) {
	isNew, more := m.add(kind, key, value)
	switch {
	case isNew:
		m.log.Warn("Skipped an invalid entry of the allocator", "kind", kind, "key", key, "error", err)
	case more:
		m.log.Warn("The allocator has more invalid entries, which the log does not name", "named", maxMalformed)
	}
}

// add counts an entry. It reports whether the entry is new, and whether it is the first one above the limit.
func (m *malformed) add(kind, key string, value []byte) (isNew, more bool) {
	var h maphash.Hash
	h.SetSeed(m.seed)
	_, _ = h.WriteString(key) // never fails
	_ = h.WriteByte(0)
	_, _ = h.Write(value)
	entry := h.Sum64()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.seen[entry]; known {
		return false, false
	}
	m.metrics.Malformed(kind)
	if len(m.seen) >= maxMalformed {
		more, m.more = !m.more, true
		return false, more
	}
	m.seen[entry] = struct{}{}
	return true, false
}

func readMapping(keys allocator.Key, value []byte) (allocator.Key, error) {
	if len(value) == 0 {
		return nil, &wire.RejectError{Reason: wire.ReasonMissing, Err: errors.New("the mapping has no key")}
	}
	key, err := keys.PutKey(string(value))
	if err != nil {
		return nil, &wire.RejectError{Reason: wire.ReasonMalformed, Err: err}
	}
	return key, nil
}
