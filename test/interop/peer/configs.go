package main

import (
	"encoding/json"

	cmtypes "github.com/cilium/cilium/pkg/clustermesh/types"
	"github.com/cilium/cilium/pkg/kvstore"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

func clusterConfigs() kind {
	return kind{
		name:     model.ClusterConfigs,
		prefix:   kvstore.ClusterConfigPrefix,
		unscoped: true,
		encode:   func(o *model.Objects) []store.Key { return newKeys(o.ClusterConfigs, newClusterConfig) },
		creator:  func(model.Expect) store.KeyCreator { return func() store.Key { return &clusterConfig{} } },
		collect: func(_ model.Expect, key store.Key, into *model.Objects) error {
			into.ClusterConfigs = append(into.ClusterConfigs, modelClusterConfig(key.(*clusterConfig)))
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
	config := cmtypes.CiliumClusterConfig{ID: c.ID, Capabilities: cmtypes.CiliumClusterConfigCapabilities{
		SyncedCanaries: c.SyncedCanaries, Cached: c.Cached, MaxConnectedClusters: c.MaxConnectedClusters,
	}}
	setCapabilities(&config.Capabilities, c)
	return &clusterConfig{cluster: c.Cluster, config: config}
}

func modelClusterConfig(c *clusterConfig) model.ClusterConfig {
	capabilities := c.config.Capabilities
	config := model.ClusterConfig{
		Cluster: c.cluster, ID: c.config.ID,
		SyncedCanaries: capabilities.SyncedCanaries, Cached: capabilities.Cached,
		MaxConnectedClusters: capabilities.MaxConnectedClusters,
	}
	modelCapabilities(capabilities, &config)
	return config
}
