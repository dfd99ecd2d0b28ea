package identity

import (
	"errors"
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Key is a set of labels as an [allocator.Key]. Its text is what is stored,
// letter by letter: a text that no writer of today would write, such as unsorted
// labels, is a key of its own.
type Key struct{ text string }

// KeyOf returns the key of a set of labels.
func KeyOf(labels wire.Labels) Key { return Key{labels.Encode()} }

// Labels returns the labels, in the order of the text. A label whose value had a
// semicolon comes back as two (wire.md §1.6).
func (k Key) Labels() wire.Labels { return wire.ParseLabels(k.text) }

// GetKey implements [allocator.Key].
func (k Key) GetKey() string { return k.text }

// PutKey implements [allocator.Key].
func (Key) PutKey(text string) (allocator.Key, error) {
	if len(wire.ParseLabels(text)) == 0 {
		return nil, errors.New("it has no label")
	}
	return Key{text}, nil
}

// GetAsMap implements [allocator.Key]: "source:key" to value.
func (k Key) GetAsMap() map[string]string { return k.Labels().Map() }

// PutKeyFromMap implements [allocator.Key].
func (Key) PutKeyFromMap(m map[string]string) (allocator.Key, error) {
	labels := wire.LabelsFromMap(m)
	if len(labels) == 0 {
		return nil, fmt.Errorf("none of %d labels has a key", len(m))
	}
	return KeyOf(labels), nil
}

// String implements [allocator.Key].
func (k Key) String() string { return k.text }
