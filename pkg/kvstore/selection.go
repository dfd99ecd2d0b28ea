package kvstore

import "strings"

// What [Client.List] and [Client.Watch] are given selects keys: one that ends
// in "/" selects every key below it, anything else is a whole key and selects
// that key alone. So no prefix can match a sibling by accident ("c1" and
// "c10"), and a single key can be listed and watched by a user who may read no
// more than that (spec wire.md §0: the cluster configuration).

// Selects tells whether the selection covers the key.
func Selects(selection, key string) bool {
	if strings.HasSuffix(selection, "/") {
		return strings.HasPrefix(key, selection)
	}
	return key == selection
}

// SelectionEnd returns the end of the range that etcd is asked for; empty for
// a single key.
func SelectionEnd(selection string) string {
	if below, ok := strings.CutSuffix(selection, "/"); ok {
		return below + "0" // what follows the slash
	}
	return ""
}
