package main

import (
	"encoding/json"
	"net"
	"net/netip"
	"strconv"

	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"
	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/identity/cache"
	identitykey "github.com/cilium/cilium/pkg/identity/key"
	"github.com/cilium/cilium/pkg/ipcache"
	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/store"
	"github.com/cilium/cilium/pkg/labels"
	nodestore "github.com/cilium/cilium/pkg/node/store"
	nodetypes "github.com/cilium/cilium/pkg/node/types"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// The kinds of every release.

func clusterConfigs() kind {
	return kind{
		name:     model.ClusterConfigs,
		prefix:   kvstore.ClusterConfigPrefix,
		unscoped: true,
		encode:   func(o *model.Objects) []store.Key { return newKeys(o.ClusterConfigs, newClusterConfig) },
		creator:  func(model.Expect) store.KeyCreator { return func() store.Key { return &clusterConfig{} } },
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			c := key.(*clusterConfig)
			config := translated[model.ClusterConfig](c.config.Capabilities)
			config.Cluster, config.ID = c.cluster, c.config.ID
			into.ClusterConfigs = append(into.ClusterConfigs, *config)
			return nil
		},
	}
}

// clusterConfig gives a cluster's configuration a key. It is read and written with
// encoding/json, as in pkg/clustermesh/clustercfg, and read as an agent does: one of
// another cluster, in a mesh of the size that the peer was started with.
type clusterConfig struct {
	cluster string
	config  cmtypes.CiliumClusterConfig
}

func (c *clusterConfig) GetKeyName() string       { return c.cluster }
func (c *clusterConfig) Marshal() ([]byte, error) { return json.Marshal(c.config) }

func (c *clusterConfig) Unmarshal(name string, value []byte) error {
	c.cluster = name
	if err := json.Unmarshal(value, &c.config); err != nil {
		return err
	}
	local := cmtypes.ClusterInfo{ID: 1, Name: "local", MaxConnectedClusters: cmtypes.ClusterIDMax}
	return local.ValidateRemoteConfig(c.config)
}

func newClusterConfig(c model.ClusterConfig) *clusterConfig {
	capabilities := translated[cmtypes.CiliumClusterConfigCapabilities](c)
	return &clusterConfig{cluster: c.Cluster, config: cmtypes.CiliumClusterConfig{ID: c.ID, Capabilities: *capabilities}}
}

func nodes() kind {
	return kind{
		name:   model.Nodes,
		prefix: nodestore.NodeStorePrefix,
		encode: func(o *model.Objects) []store.Key { return newKeys(o.Nodes, translated[nodetypes.Node]) },
		creator: func(e model.Expect) store.KeyCreator {
			return nodestore.ValidatingKeyCreator(nodestore.ClusterNameValidator(e.Cluster),
				nodestore.NameValidator(), nodestore.ClusterIDValidator(&e.ClusterID))
		},
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			return add(&into.Nodes, key.(*nodestore.ValidatingNode).Node)
		},
	}
}

func services() kind {
	return kind{
		name:    model.Services,
		prefix:  serviceStorePrefix(),
		encode:  func(o *model.Objects) []store.Key { return newKeys(o.Services, newService) },
		creator: serviceCreator,
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			return add(&into.Services, &key.(*validatingClusterService).ClusterService)
		},
	}
}

func newService(s model.Service) *clusterService {
	service := emptyService(s.Namespace, s.Name)
	if err := translate(&service, s); err != nil {
		panic(err) // every address has a text
	}
	return &service
}

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
	return model.Identity{Cluster: cluster, ID: id, Labels: *translated[[]model.Label](array)}
}

func addresses() kind {
	return kind{
		name:     model.Addresses,
		prefix:   ipcache.IPIdentitiesPath + "/" + ipcache.DefaultAddressSpace,
		unscoped: true,
		encode:   func(o *model.Objects) []store.Key { return newKeys(o.Addresses, newAddress) },
		creator: func(model.Expect) store.KeyCreator {
			return func() store.Key { return &identity.IPIdentityPair{} }
		},
		collect: func(e model.Expect, key store.Key, into *model.Objects) error {
			into.Addresses = append(into.Addresses, modelAddress(e.Cluster, key.(*identity.IPIdentityPair)))
			return nil
		},
	}
}

func newAddress(a model.Address) *identity.IPIdentityPair {
	pair := translated[identity.IPIdentityPair](a)
	pair.IP = a.Prefix.Addr().AsSlice()
	if !a.Host {
		pair.Mask = net.CIDRMask(a.Prefix.Bits(), a.Prefix.Addr().BitLen())
	}
	return pair
}

func modelAddress(cluster string, p *identity.IPIdentityPair) model.Address {
	address, addr := *translated[model.Address](p), modelIP(p.IP)
	address.Cluster, address.Host = cluster, p.IsHost()
	address.Prefix = netip.PrefixFrom(addr, addr.BitLen())
	if !address.Host {
		ones, _ := p.Mask.Size()
		address.Prefix = netip.PrefixFrom(addr, ones)
	}
	return address
}
