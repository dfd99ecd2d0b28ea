package store

// Change is one step of a keyed collection, as a domain table applies it. Old
// is nil for a creation, New is nil for a deletion, both are set for a
// modification. Name is the key without its prefix. The values are immutable
// and shared with the set that reported the change.
type Change[T any] struct {
	Name     string
	Old, New *T
}
