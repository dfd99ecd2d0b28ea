package ipcache

// What an entry takes in memory, about: itself, and its places in the indexes.
const (
	costEntry = 112 + 128
	costPort  = 48
)

// Cost is how many bytes the entry takes in memory, with its places in the cache,
// about.
func (e *Entry) Cost() int { return costEntry + len(e.name) + costPort*len(e.Ports()) }
