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

// Usage determines which mappings of a kvstore are in use. Garbage collection, its dry run and checks share its rule:
// a reference uses a mapping that has its ID and whose text leads to its path (wire.md §5). A reference that has only
// the ID in common with a mapping belongs to other labels. One that has only the path in common belongs to another
// ID. Usage keeps no texts, and belongs to one goroutine.
type Usage struct {
	seed maphash.Seed
	byID map[uint64]usage
}

type usage struct {
	revision int64
	path     uint64 // hash of the path of its references
	used     bool
}

// NewUsage returns a Usage without mappings.
func NewUsage() *Usage {
	return &Usage{seed: maphash.MakeSeed(), byID: make(map[uint64]usage)}
}

// Mapping adds a mapping with its text, readable or not, and its revision. All mappings are read and added before the
// references are read. Otherwise a mapping with a reference could look unused, when both are written in between.
func (u *Usage) Mapping(id uint64, text string, revision int64) {
	u.byID[id] = usage{revision: revision, path: maphash.String(u.seed, pathOf(text))}
}

// Reference adds a reference by the key in its path ([ReadReference]). uses reports whether it uses the mapping of
// its ID, mapped whether that mapping exists.
func (u *Usage) Reference(key string, id uint64) (uses, mapped bool) {
	m, mapped := u.byID[id]
	if !mapped || m.path != maphash.String(u.seed, key) {
		return false, mapped
	}
	m.used = true
	u.byID[id] = m
	return true, true
}

// InUse reports whether a reference uses the mapping of the ID.
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

// Unused returns the mappings from lo to hi that no reference uses. A round of garbage collection deletes those that
// the previous round found at the same revision.
func (u *Usage) Unused(lo, hi uint64) StaleIDs {
	unused := make(StaleIDs)
	for id, m := range u.byID {
		if !m.used && lo <= id && id <= hi {
			unused[id] = m.revision
		}
	}
	return unused
}

// IDs returns the IDs in ascending order.
func (s StaleIDs) IDs() []uint64 { return slices.Sorted(maps.Keys(s)) }

// pathOf returns the key in the paths of the references of a text. It does not depend on the base.
func pathOf(text string) string {
	const any = wire.IdentityAllocation
	return strings.TrimSuffix(strings.TrimPrefix(any.ReferencesOf(text), any.References()), "/")
}

// MappingID reads the ID in the name of a mapping. The name is the mapping's key without the prefix of all mappings.
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

// ReadReference reads a node reference. The name is the reference's key without the prefix of all references.
func ReadReference(name string, value []byte) (key, node string, id uint64, err error) {
	key, node, ok := wire.ParseReferenceName(name)
	if !ok || strings.HasPrefix(name, "/") {
		return "", "", NoID, errNoReference
	}
	id, err = wire.DecodeAllocatedID(string(value))
	return key, node, id, err
}
