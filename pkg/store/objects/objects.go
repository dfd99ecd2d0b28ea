// Package objects has the table of a key family: the objects of all clusters, each as its cluster publishes it.
//
// Concurrency: Apply may be called by several goroutines; their transactions queue. Readers take snapshots of the table
// and never wait.
package objects

import (
	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// Table is the only writer of a table of objects, which are immutable after they were passed to Apply.
type Table[T any] struct {
	db    *statedb.DB
	rows  statedb.RWTable[*T]
	equal func(one, other *T) bool
}

// New registers a table. The key of an object begins with the name of its cluster and a slash. Objects that are equal
// are not written again. There may be further indexes in addition to the one by key. New fails when the database
// already has a table of that name.
func New[T any](db *statedb.DB, name string, key func(*T) string, equal func(one, other *T) bool, others ...statedb.Indexer[*T]) (*Table[T], error) {
	rows, err := tables.New(db, name, key, tables.TextIndex(keyIndex, true, key), others...)
	return &Table[T]{db, rows, equal}, err
}

const keyIndex = "key"

// ByKey finds the object with this key.
func ByKey[T any](key string) statedb.Query[*T] {
	return tables.TextIndex[*T](keyIndex, true, nil).Query(key)
}

// Rows returns the table for readers.
func (t *Table[T]) Rows() statedb.Table[*T] { return t.rows }

// Apply makes the changes visible in one transaction.
func (t *Table[T]) Apply(changes []store.Change[T]) {
	if len(changes) == 0 {
		return
	}
	txn := t.db.WriteTxn(t.rows)
	defer txn.Abort()
	for _, ch := range changes {
		Replace(txn, t.rows, t.equal, ch)
	}
	txn.Commit()
}

// Replace writes one change of an object, unless it equals the one in the table. It returns the new or deleted object,
// and the previous one.
func Replace[T any](txn statedb.WriteTxn, table statedb.RWTable[*T], equal func(one, other *T) bool, ch store.Change[T]) (one, before *T, changed bool) {
	switch {
	case ch.New != nil:
		before, _, found := table.Get(txn, table.PrimaryIndexer().QueryFromObject(ch.New))
		if found && equal(before, ch.New) {
			return nil, nil, false
		}
		_, _, err := table.Insert(txn, ch.New)
		tables.Must(err)
		return ch.New, before, true
	case ch.Old != nil:
		before, changed, err := table.Delete(txn, ch.Old)
		tables.Must(err)
		return before, before, changed
	}
	return nil, nil, false
}
