package tables

import (
	"fmt"

	"github.com/cilium/statedb"
)

// Follower gives the changes of the objects of a table. It keeps deleted objects
// until they were given, so each reader of a process should have one at most. It
// belongs to one goroutine.
type Follower[T any] struct {
	db       *statedb.DB
	table    statedb.Table[T]
	changes  statedb.ChangeIterator[T]
	more     <-chan struct{}
	revision statedb.Revision // of the table when everything was given
}

// Follow returns a follower that has given nothing: the objects that are there
// come first. It fails when the table is none of the database's.
func Follow[T any](db *statedb.DB, table statedb.Table[T]) (*Follower[T], error) {
	txn := db.WriteTxn(table)
	defer txn.Abort()
	changes, err := table.Changes(txn)
	if err != nil {
		return nil, fmt.Errorf("following the table of %s: %w", table.Name(), err)
	}
	txn.Commit()
	return &Follower[T]{db: db, table: table, changes: changes}, nil
}

// Drain gives everything that has changed since it was called last: each object
// once, as it is now or, deleted, as it was. Without changes it costs nothing.
func (f *Follower[T]) Drain(give func(object T, deleted bool)) { f.DrainTo(f.db.ReadTxn(), give) }

// DrainTo is Drain up to what the transaction sees, all of it and no more. No later
// transaction may have been drained to.
func (f *Follower[T]) DrainTo(txn statedb.ReadTxn, give func(object T, deleted bool)) {
	for given := f.table.Revision(txn) == f.revision; ; given = true {
		changes, more := f.changes.Next(txn)
		n := 0
		for ch := range changes {
			give(ch.Object, ch.Deleted)
			n++
		}
		switch {
		case n > 0:
		case given:
			f.more, f.revision = more, f.table.Revision(txn)
			return
		default:
			<-more // a change is visible a moment before it is announced, and given only then
		}
	}
}

// Changed is closed when there is more than at the last Drain; nil before
// the first one.
func (f *Follower[T]) Changed() <-chan struct{} { return f.more }

// Close lets go of the deleted objects.
func (f *Follower[T]) Close() { f.changes.Close() }
