// Package tables has what the packages share that keep their objects in statedb tables.
package tables

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"
)

// MaxText is the maximum number of bytes that an index keeps of a text: it cannot store lengths beyond 16 bits, and a
// remote may choose names of any length.
const MaxText = 4096

// textKey is the text, or the beginning of a very long one with its hash.
func textKey(text string) index.Key {
	if len(text) <= MaxText {
		return index.String(text)
	}
	sum := sha256.Sum256([]byte(text))
	return append([]byte(text[:MaxText]), sum[:]...)
}

// TextIndex is an index of objects by one of their texts. Objects without one are not in
// it, unless it is unique.
func TextIndex[O any](name string, unique bool, text func(O) string) statedb.Index[O, string] {
	return statedb.Index[O, string]{
		Name: name, Unique: unique, FromKey: textKey,
		FromString: func(s string) (index.Key, error) { return textKey(s), nil },
		FromObject: func(o O) index.KeySet {
			s := text(o)
			if s == "" && !unique {
				return index.NewKeySet()
			}
			return index.NewKeySet(textKey(s))
		},
	}
}

// TextsIndex is an index of objects by several of their texts each, which others may have as well.
func TextsIndex[O any](name string, texts func(O) iter.Seq[string]) statedb.Index[O, string] {
	return statedb.Index[O, string]{
		Name: name, FromKey: textKey,
		FromString: func(s string) (index.Key, error) { return textKey(s), nil },
		FromObject: func(o O) index.KeySet {
			var keys []index.Key
			for s := range texts(o) {
				keys = append(keys, textKey(s))
			}
			slices.SortFunc(keys, func(a, b index.Key) int { return bytes.Compare(a, b) })
			return index.NewKeySet(slices.CompactFunc(keys, index.Key.Equal)...)
		},
	}
}

// New registers a table. It fails when the database has one of that name. Debuggers of
// statedb show objects by their names.
func New[O any](db *statedb.DB, table string, name func(O) string, primary statedb.Indexer[O], others ...statedb.Indexer[O]) (statedb.RWTable[O], error) {
	header := func() []string { return []string{"Name"} }
	t, err := statedb.NewTableAny(db, table, header, func(o O) []string { return []string{name(o)} }, primary, others...)
	if err != nil {
		return nil, fmt.Errorf("creating the table %s: %w", table, err)
	}
	return t, nil
}

// Must takes the errors of a table's writer, which only say that the
// transaction was not one on it: a programmer's mistake.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Follower gives the changes of the objects of a table. It keeps deleted objects until they were
// given, so each reader of a process should have one at most. It belongs to one goroutine.
type Follower[T any] struct {
	db       *statedb.DB
	table    statedb.Table[T]
	changes  statedb.ChangeIterator[T]
	more     <-chan struct{}
	revision statedb.Revision // of the table when everything was given
}

// Follow returns a follower that has given nothing: the present objects come first. It fails when the table does not
// belong to the database.
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

// Drain gives each object that has changed since the last call once: its present state or, if it is deleted, its last
// one. Without changes it costs nothing.
func (f *Follower[T]) Drain(give func(object T, deleted bool)) { f.DrainTo(f.db.ReadTxn(), give) }

// DrainTo is Drain up to the state that the transaction sees. A later transaction must not have been drained to
// before.
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

// Changed is closed when there is more than at the last Drain; nil before the first one.
func (f *Follower[T]) Changed() <-chan struct{} { return f.more }

// Close releases the deleted objects. A nil follower has none.
func (f *Follower[T]) Close() {
	if f != nil {
		f.changes.Close()
	}
}

// AnyFollower is a follower of any objects.
type AnyFollower interface {
	Changed() <-chan struct{}
	Close()
}

// WatchSet returns the channels of the followers; one is closed when its follower has more.
func WatchSet(all ...AnyFollower) *statedb.WatchSet {
	set := statedb.NewWatchSet()
	for _, f := range all {
		set.Add(f.Changed())
	}
	return set
}
