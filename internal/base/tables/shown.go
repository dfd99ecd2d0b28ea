package tables

import (
	"iter"

	"github.com/cilium/statedb"
)

// Shown is a table as a view shows it, without the type of its objects. Objects are in the order of their keys.
type Shown interface {
	// Key identifies an object in its table.
	Key(object any) string
	// Added returns how many bytes a version of an object takes in addition to the other one; nil means no object.
	Added(object, other any) int
	// All iterates over the objects that the transaction sees.
	All(txn statedb.ReadTxn) iter.Seq[any]
	// Find returns the object with the same key that the transaction sees, nil when there is none.
	Find(txn statedb.ReadTxn, object any) any
	// Follow returns a follower, which must be closed.
	Follow(db *statedb.DB) (ShownFollower, error)
}

// ShownFollower is a [Follower] of a table that is shown.
type ShownFollower interface {
	AnyFollower
	DrainTo(txn statedb.ReadTxn, give func(object any, deleted bool))
}

// Show returns a table as shown, whose objects have this key and cost.
func Show[T any](table statedb.Table[*T], key func(*T) string, added func(object, other *T) int) Shown {
	return shown[T]{table, key, added}
}

// Whole returns the cost function for objects whose versions share no memory.
func Whole[T any](cost func(*T) int) func(object, other *T) int {
	return func(object, _ *T) int {
		if object == nil {
			return 0
		}
		return cost(object)
	}
}

type shown[T any] struct {
	table statedb.Table[*T]
	key   func(*T) string
	added func(object, other *T) int
}

func (s shown[T]) Key(object any) string { return s.key(object.(*T)) }

func (s shown[T]) Added(object, other any) int {
	one, _ := object.(*T)
	two, _ := other.(*T)
	return s.added(one, two)
}

func (s shown[T]) All(txn statedb.ReadTxn) iter.Seq[any] {
	return func(yield func(any) bool) {
		for object := range s.table.All(txn) {
			if !yield(object) {
				return
			}
		}
	}
}

func (s shown[T]) Find(txn statedb.ReadTxn, object any) any {
	found, _, is := s.table.Get(txn, s.table.PrimaryIndexer().QueryFromObject(object.(*T)))
	if !is {
		return nil
	}
	return found
}

func (s shown[T]) Follow(db *statedb.DB) (ShownFollower, error) {
	f, err := Follow(db, s.table)
	return shownFollower[T]{f}, err
}

type shownFollower[T any] struct{ *Follower[*T] }

func (f shownFollower[T]) DrainTo(txn statedb.ReadTxn, give func(object any, deleted bool)) {
	f.Follower.DrainTo(txn, func(object *T, deleted bool) { give(object, deleted) })
}
