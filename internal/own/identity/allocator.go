package identity

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Allocator gives identities to sets of labels.
type Allocator struct {
	cluster Owner
	ids     *allocator.Allocator
}

// NewAllocator returns an allocator of the cluster's identities. ids was made
// with [allocator.WithCluster]; its Run is the caller's.
func NewAllocator(c Owner, ids *allocator.Allocator) (*Allocator, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("allocating identities: %w", err)
	}
	return &Allocator{c, ids}, nil
}

// Allocate returns the identity of the labels, and takes a reference of it until
// [Allocator.Release]. It reports whether the identity was made for this. A reserved one is returned
// at once, and has no references. The label that names the cluster is added if it is missing. The
// error is [ErrLabels] for labels that cannot have an identity.
func (a *Allocator) Allocate(ctx context.Context, labels wire.Labels) (id uint32, isNew bool, err error) {
	id, reserved, err := a.cluster.Reserved(labels)
	if reserved || err != nil {
		return id, false, err
	}
	own, err := a.cluster.Own(labels)
	if err != nil {
		return 0, false, err
	}
	n, isNew, _, err := a.ids.Allocate(ctx, KeyOf(own))
	if err != nil {
		return 0, false, err
	}
	if n > math.MaxUint32 {
		return 0, false, fmt.Errorf("the identity %d is no 32-bit number: the range of the allocator is not the cluster's", n)
	}
	return uint32(n), isNew, nil
}

// Release gives up one reference, and reports whether it was the last one of this
// node. The error is [allocator.ErrIdentityNonExistent] when there was none.
func (a *Allocator) Release(ctx context.Context, labels wire.Labels) (last bool, err error) {
	if _, reserved, err := a.cluster.Reserved(labels); reserved || err != nil {
		return false, err
	}
	own, err := a.cluster.Own(labels)
	if err != nil {
		return false, err
	}
	return a.ids.Release(ctx, KeyOf(own))
}

// AcceptOwn refuses, of the mappings in the own cluster's kvstore, those outside its range
// and those whose labels name another cluster ([allocator.WithValidator]).
func (c Owner) AcceptOwn(id uint64, key allocator.Key) error {
	i, err := wire.DecodeIdentity(fmt.Sprint(id), []byte(key.GetKey()), wire.Expect{Cluster: c.Name, ClusterID: c.ID, Layout: c.Layout, Own: true})
	if err != nil {
		return err
	}
	for _, l := range i.Labels {
		if l.Key == wire.LabelCluster && l.Value != c.Name {
			return fmt.Errorf("the label %s names another cluster than %s", l, c.Name)
		}
	}
	return nil
}

// Accept refuses what a remote cluster may not say: an identity outside its
// range, or labels that do not name it (wire.md §1.6).
func (c Owner) Accept(id uint64, key allocator.Key) error {
	_, err := wire.DecodeIdentity(fmt.Sprint(id), []byte(key.GetKey()), wire.Expect{Cluster: c.Name, ClusterID: c.ID, Layout: c.Layout})
	return err
}

// Key is a set of labels as an [allocator.Key]. Its text is the stored text, byte for byte: a text that no current
// writer would write, such as unsorted labels, is a separate key.
type Key struct{ text string }

// KeyOf returns the key of a set of labels.
func KeyOf(labels wire.Labels) Key { return Key{labels.Encode()} }

// Labels returns the labels, in the order of the text. A label whose value had a semicolon is read as two labels
// (wire.md §1.6).
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
