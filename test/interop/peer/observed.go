package main

import (
	"sync"

	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// observed has the present keys of one kind. It is a [store.Observer].
type observed struct {
	kind kind
	mu   sync.Mutex
	keys map[string]store.Key
}

func observe(k kind) *observed {
	return &observed{kind: k, keys: map[string]store.Key{}}
}

// OnUpdate implements [store.Observer].
func (o *observed) OnUpdate(key store.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys[key.GetKeyName()] = key
}

// OnDelete implements [store.Observer].
func (o *observed) OnDelete(key store.NamedKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.keys, key.GetKeyName())
}

func (o *observed) collect(expect model.Expect, into *model.Objects) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range o.keys {
		if err := o.kind.collect(expect, key, into); err != nil {
			return err
		}
	}
	return nil
}
