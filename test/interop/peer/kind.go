package main

import (
	"fmt"
	"strings"

	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// kind describes how the release writes and reads objects of one kind.
type kind struct {
	name model.Kind
	// prefix is that of all clusters' keys. The names of the keys begin with the
	// cluster, except when unscoped.
	prefix   string
	unscoped bool
	// encode returns the objects of this kind in the release's own type.
	encode func(*model.Objects) []store.Key
	// creator makes objects of the release's own type that refuse what the release's
	// reader of a remote cluster refuses.
	creator func(model.Expect) store.KeyCreator
	// collect adds an object of the release's own type.
	collect func(model.Expect, store.Key, *model.Objects) error
}

// kindByKey returns the kind of a key of the cluster, with the rest of the key.
func kindByKey(key, cluster string) (kind, string, error) {
	for _, k := range kinds() {
		if name, ok := strings.CutPrefix(key, k.dir(cluster)+"/"); ok {
			return k, name, nil
		}
	}
	return kind{}, "", fmt.Errorf("no kind has the key %s", key)
}

// dir is what the keys of a cluster begin with, without the slash behind it.
func (k kind) dir(cluster string) string {
	if k.unscoped {
		return k.prefix
	}
	return k.prefix + "/" + cluster
}

// newKeys makes the objects of a list, one by one.
func newKeys[T any, K store.Key](objects []T, make func(T) K) []store.Key {
	keys := []store.Key{}
	for _, o := range objects {
		keys = append(keys, make(o))
	}
	return keys
}
