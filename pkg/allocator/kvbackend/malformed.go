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

// malformed reports entries that cannot be read: each value of each key once, whoever meets it.
// Of what is more than it remembers it only logs that there is more, and counts it each time.
type malformed struct {
	log     *slog.Logger
	metrics *allocator.Metrics
	seed    maphash.Seed

	mu   sync.Mutex
	seen map[uint64]struct{} // hashes of keys with their values; guarded by mu
	more bool                // it was logged that there is more; guarded by mu
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

// add counts an entry, and reports whether it is a new one, or the first that is one too many.
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
