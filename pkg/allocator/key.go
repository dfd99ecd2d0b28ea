package allocator

// Key is what an ID is allocated for. Its text is canonical: two keys are the
// same key if and only if their texts are equal. Keys are immutable.
type Key interface {
	// GetKey returns the canonical text, which is also what is stored.
	GetKey() string
	// PutKey returns the key of a stored text, of the same type as this one. The
	// error is for a text that is no key.
	PutKey(text string) (Key, error)
	// GetAsMap returns the labels, for people and programs that show them.
	GetAsMap() map[string]string
	// PutKeyFromMap is the reverse of GetAsMap.
	PutKeyFromMap(m map[string]string) (Key, error)
	// String returns the key for logs.
	String() string
}

// NoID is no ID.
const NoID uint64 = 0
