package allocator

import (
	"iter"
	"maps"
	"slices"
)

// mappings is a cache of mappings, by ID and by key. If several IDs have the same key, the least is the key's ID.
type mappings struct {
	keys map[uint64]Key
	ids  map[string]uint64 // the least ID, by the text of the key
	// more holds the other IDs of keys that have several, in ascending order.
	more map[string][]uint64
}

func newMappings() mappings {
	return mappings{keys: make(map[uint64]Key), ids: make(map[string]uint64), more: make(map[string][]uint64)}
}

func (m *mappings) id(text string) uint64 { return m.ids[text] }

func (m *mappings) key(id uint64) Key { return m.keys[id] }

// set sets the key of the ID and returns its previous key, or nil.
func (m *mappings) set(id uint64, key Key) (old Key) {
	old = m.delete(id)
	text := key.GetKey()
	m.keys[id] = key
	least, found := m.ids[text]
	if !found {
		m.ids[text] = id
		return old
	}
	others := m.more[text]
	m.ids[text] = min(least, id)
	at, _ := slices.BinarySearch(others, max(least, id))
	m.more[text] = slices.Insert(others, at, max(least, id))
	return old
}

// delete removes the ID and returns its key, or nil.
func (m *mappings) delete(id uint64) (old Key) {
	old, found := m.keys[id]
	if !found {
		return nil
	}
	delete(m.keys, id)
	text := old.GetKey()
	others := m.more[text]
	if len(others) == 0 {
		delete(m.ids, text)
		return old
	}
	if m.ids[text] == id {
		m.ids[text], others = others[0], others[1:]
	} else if at, found := slices.BinarySearch(others, id); found {
		others = slices.Delete(others, at, at+1)
	}
	if m.more[text] = others; len(others) == 0 {
		delete(m.more, text)
	}
	return old
}

// all iterates once over the current mappings, by ID. It has a copy, which is sorted when the iteration begins, so
// the mappings may be changed meanwhile.
func (m *mappings) all() iter.Seq2[uint64, Key] { return byID(maps.Clone(m.keys)) }

func byID(keys map[uint64]Key) iter.Seq2[uint64, Key] {
	return func(yield func(uint64, Key) bool) {
		for _, id := range slices.Sorted(maps.Keys(keys)) {
			if !yield(id, keys[id]) {
				return
			}
		}
	}
}
