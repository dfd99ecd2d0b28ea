package main

import (
	"strconv"

	"github.com/cilium/cilium/pkg/identity/cache"
	identitykey "github.com/cilium/cilium/pkg/identity/key"
	"github.com/cilium/cilium/pkg/kvstore/store"
	"github.com/cilium/cilium/pkg/labels"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func identities() kind {
	return kind{
		name:     model.Identities,
		prefix:   cache.IdentitiesPath + "/id",
		unscoped: true,
		encode:   func(o *model.Objects) []store.Key { return newKeys(o.Identities, newIdentity) },
		creator:  func(model.Expect) store.KeyCreator { return store.KVPairCreator },
		collect: func(e model.Expect, key store.Key, into *model.Objects) error {
			pair := key.(*store.KVPair)
			id, err := strconv.ParseUint(pair.Key, 10, 32)
			if err != nil {
				return err
			}
			decoded := (&identitykey.GlobalIdentity{}).PutKey(string(pair.Value)).(*identitykey.GlobalIdentity)
			into.Identities = append(into.Identities, modelIdentity(e.Cluster, uint32(id), decoded.LabelArray))
			return nil
		},
	}
}

// newIdentity writes labels as both the agent and the API server do.
func newIdentity(i model.Identity) *store.KVPair {
	set := labels.Labels{}
	for _, l := range i.Labels {
		set[l.Key] = labels.NewLabel(l.Key, l.Value, l.Source)
	}
	return store.NewKVPair(strconv.FormatUint(uint64(i.ID), 10), string(set.SortedList()))
}

func modelIdentity(cluster string, id uint32, array labels.LabelArray) model.Identity {
	identity := model.Identity{Cluster: cluster, ID: id}
	for _, l := range array {
		identity.Labels = append(identity.Labels, model.Label{Source: l.Source, Key: l.Key, Value: l.Value})
	}
	return identity
}
