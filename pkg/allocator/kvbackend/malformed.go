package kvbackend

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// What cannot be read, in the figures and in the log.
const (
	badMapping   = "mapping"
	badReference = "reference"
)

// maxMalformed bounds how many entries that cannot be read are remembered.
const maxMalformed = 1000

// malformed tells of entries that cannot be read: of each value of each key once,
// whoever meets it. Of what is more than it remembers it tells nothing but that there
// is more, and counts it each time.
type malformed struct {
	log     *slog.Logger
	metrics *allocator.Metrics
	seed    maphash.Seed

	mu   sync.Mutex
	seen map[uint64]struct{} // hashes of keys with their values; guarded by mu
	more bool                // it was told that there is more; guarded by mu
}

func newMalformed(log *slog.Logger, metrics *allocator.Metrics) *malformed {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &malformed{log: log, metrics: metrics, seed: maphash.MakeSeed(), seen: make(map[uint64]struct{})}
}

// found counts an entry, and logs it.
func (m *malformed) found(kind, key string, value []byte, err error) {
	isNew, more := m.add(kind, key, value)
	switch {
	case isNew:
		m.log.Warn("Skipped an entry of the allocator that cannot be read", "kind", kind, "key", key, "error", err)
	case more:
		m.log.Warn("There are more entries of the allocator that cannot be read, which are not named", "named", maxMalformed)
	}
}

// count counts one that somebody else logs.
func (m *malformed) count(kind, key string, value []byte) { m.add(kind, key, value) }

// add notes an entry and tells whether it is a new one, or the first that is one too
// many.
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

// mappingID reads the name of a mapping.
func mappingID(name string) (uint64, error) {
	id, err := wire.DecodeAllocatedID(name)
	if err == nil && name != string(wire.EncodeAllocatedID(id)) {
		err = &wire.RejectError{
			Reason: wire.ReasonKey,
			Err:    fmt.Errorf("%q is not how %d is written: it would be a second mapping of one number", name, id),
		}
	}
	return id, err
}

// readMapping reads the key of a mapping.
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

var errNoReference = errors.New("this is no node reference: KEY/NODE is expected below the prefix")

// readReference reads a node reference, whose name is its key without the prefix of all
// of them: the number in it.
func readReference(name string, value []byte) (uint64, error) {
	if _, _, ok := wire.ParseReferenceName(name); !ok || strings.HasPrefix(name, "/") {
		return 0, errNoReference
	}
	return wire.DecodeAllocatedID(string(value))
}
