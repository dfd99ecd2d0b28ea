// Package tables has what the packages share that keep their objects in statedb
// tables.
package tables

import (
	"crypto/sha256"

	"github.com/cilium/statedb/index"
)

// MaxText bounds what an index keeps of a text, in bytes: it cannot tell lengths
// beyond 16 bits, and a remote may name things as it likes.
const MaxText = 4096

// TextKey is the text, or the beginning of a very long one with its hash.
func TextKey(text string) index.Key {
	if len(text) <= MaxText {
		return index.String(text)
	}
	sum := sha256.Sum256([]byte(text))
	return append([]byte(text[:MaxText]), sum[:]...)
}

// TextKeyFromString is TextKey as an index wants it for queries from outside.
func TextKeyFromString(text string) (index.Key, error) { return TextKey(text), nil }

// Must takes the errors of a table's writer, which only say that the
// transaction was not one on it: a programmer's mistake.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
