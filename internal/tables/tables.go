// Package tables has what the packages share that keep their objects in statedb
// tables.
package tables

import (
	"crypto/sha256"
	"fmt"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"
)

// MaxText bounds what an index keeps of a text, in bytes: it cannot tell lengths
// beyond 16 bits, and a remote may name things as it likes.
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
