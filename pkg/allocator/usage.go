package allocator

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Usage tells which mappings of a kvstore are in use, by one rule for garbage collection, for its dry
// run and for checks: a reference uses a mapping that has its number and whose text leads to its path
// (wire.md §5). One with the number alone belongs to other labels, and one with the path alone to
// another number. It keeps no texts, and belongs to one goroutine.
type Usage struct {
	seed maphash.Seed
	byID map[uint64]usage
}

type usage struct {
	revision int64
	path     uint64 // hash of the path of its references
	used     bool
}

// NewUsage returns one without mappings.
func NewUsage() *Usage {
	return &Usage{seed: maphash.MakeSeed(), byID: make(map[uint64]usage)}
}

// Mapping adds a mapping with its text, readable or not, and its revision. All mappings are read and
// added before the references are read: so none with a reference looks unused because the two were
// written meanwhile.
func (u *Usage) Mapping(id uint64, text string, revision int64) {
	u.byID[id] = usage{revision: revision, path: maphash.String(u.seed, pathOf(text))}
}

// Reference adds a reference by the key in its path ([ReadReference]), and reports whether it uses the
// mapping of its number. mapped reports whether there is one.
func (u *Usage) Reference(key string, id uint64) (uses, mapped bool) {
	m, mapped := u.byID[id]
	if !mapped || m.path != maphash.String(u.seed, key) {
		return false, mapped
	}
	m.used = true
	u.byID[id] = m
	return true, true
}

// InUse reports whether a reference uses the mapping of the number.
func (u *Usage) InUse(id uint64) bool { return u.byID[id].used }

// Len is the number of mappings from lo to hi.
func (u *Usage) Len(lo, hi uint64) (n int) {
	for id := range u.byID {
		if lo <= id && id <= hi {
			n++
		}
	}
	return n
}

// Unused returns the mappings from lo to hi that nobody uses: a round of garbage collection deletes
// those of them that the round before has found at the same revision.
func (u *Usage) Unused(lo, hi uint64) StaleIDs {
	unused := make(StaleIDs)
	for id, m := range u.byID {
		if !m.used && lo <= id && id <= hi {
			unused[id] = m.revision
		}
	}
	return unused
}

// IDs returns the numbers in ascending order.
func (s StaleIDs) IDs() []uint64 { return slices.Sorted(maps.Keys(s)) }

// pathOf is the key in the paths of the references of a text, whatever the base is.
func pathOf(text string) string {
	const any = wire.IdentityAllocation
	return strings.TrimSuffix(strings.TrimPrefix(any.ReferencesOf(text), any.References()), "/")
}

// MappingID reads the number in the name of a mapping, its key without the prefix of all of them.
func MappingID(name string) (uint64, error) {
	id, err := wire.DecodeAllocatedID(name)
	if err == nil && name != string(wire.EncodeAllocatedID(id)) {
		err = &wire.RejectError{
			Reason: wire.ReasonKey,
			Err:    fmt.Errorf("%q is not the decimal form of %d: it would be a second mapping of this number", name, id),
		}
	}
	return id, err
}

var errNoReference = errors.New("this is no node reference: KEY/NODE is expected below the prefix")

// ReadReference reads a node reference, whose name is its key without the prefix of all of them.
func ReadReference(name string, value []byte) (key, node string, id uint64, err error) {
	key, node, ok := wire.ParseReferenceName(name)
	if !ok || strings.HasPrefix(name, "/") {
		return "", "", NoID, errNoReference
	}
	id, err = wire.DecodeAllocatedID(string(value))
	return key, node, id, err
}
