package wire

import (
	"strconv"
	"strings"
)

// AllocationPaths is the path below which an allocator keeps its allocations (wire.md §5): mappings, node
// references and locks. A key's text becomes a part of paths, in which every run of slashes is replaced by one
// slash.
type AllocationPaths string

// IdentityAllocation is the path of a cluster's identities.
const IdentityAllocation AllocationPaths = identityBase

// CachedIdentities returns the path of a cluster's identities in a mirror, which has only mappings
// (wire.md §1.1).
func CachedIdentities(cluster string) AllocationPaths {
	return AllocationPaths(strings.TrimSuffix(Identities.Prefix(cluster, true), "/id/"))
}

// Mappings is the prefix of all mappings.
func (p AllocationPaths) Mappings() string { return string(p) + "/id/" }

// Mapping is the key of the mapping of an ID; its value is the key's text.
func (p AllocationPaths) Mapping(id uint64) string { return p.Mappings() + strconv.FormatUint(id, 10) }

// References is the prefix of all node references.
func (p AllocationPaths) References() string { return string(p) + "/value/" }

// ReferencesOf is the prefix of the node references of a key. References of
// other keys may begin with it too: only names without a slash belong to it.
func (p AllocationPaths) ReferencesOf(key string) string { return p.Reference(key, "") + "/" }

// Reference is the key with which a node declares that it uses a key; its value is the ID.
func (p AllocationPaths) Reference(key, node string) string {
	return Join(string(p), "value", key, node)
}

// Locks is the prefix of all locks.
func (p AllocationPaths) Locks() string { return string(p) + "/locks/" }

// Lock is the path of the lock under which a key gets its ID.
func (p AllocationPaths) Lock(key string) string { return Join(string(p), "locks", key) }

// CollectionLock is the path of the lock under which an unused ID is deleted.
func (p AllocationPaths) CollectionLock(id uint64) string {
	return p.Lock("id/" + strconv.FormatUint(id, 10))
}

// EncodeAllocatedID returns an ID in the form of the value of a reference.
func EncodeAllocatedID(id uint64) []byte { return strconv.AppendUint(nil, id, 10) }

// DecodeAllocatedID reads an ID from the value of a reference or the name of a mapping: decimal, not 0. Leading
// zeroes are accepted. The error is a [*RejectError].
func DecodeAllocatedID(text string) (uint64, error) {
	if err := bounded(text, nil); err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return 0, reject(ReasonMalformed, "this is no numeric ID: %w", err)
	case id == 0:
		return 0, reject(ReasonRange, "ID 0 cannot be allocated")
	}
	return id, nil
}

// ParseReferenceName splits the name of a node reference (its key without
// [AllocationPaths.References]) at its last slash.
func ParseReferenceName(name string) (key, node string, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i <= 0 || i == len(name)-1 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}
