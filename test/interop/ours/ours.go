// Package ours has the objects of interoperability tests in this project's terms: it
// encodes and decodes them with package wire.
package ours

import (
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Encode writes the objects as this project does, kind by kind, in order.
func Encode(o model.Objects) []model.KV {
	var entries []model.KV
	add := func(key string, value []byte) { entries = append(entries, model.KV{Key: key, Value: value}) }
	for _, c := range o.ClusterConfigs {
		add(wire.ClusterConfigKey(c.Cluster), ClusterConfig(c).Encode())
	}
	for _, n := range o.Nodes {
		add(Node(n).Key(), Node(n).Encode())
	}
	for _, s := range o.Services {
		add(Service(s).Key(), Service(s).Encode())
	}
	slices := wire.NewSliceEncoder()
	defer slices.Close()
	for _, s := range o.EndpointSlices {
		slice := EndpointSlice(s)
		add(slice.Key(), slices.Encode(slice))
	}
	for _, s := range o.ServiceExports {
		add(ServiceExport(s).Key(), ServiceExport(s).Encode())
	}
	for _, i := range o.Identities {
		add(Identity(i).Key(), Identity(i).Encode())
	}
	for _, a := range o.Addresses {
		add(Address(a).Key(), Address(a).Encode())
	}
	return entries
}

// Decode reads entries of a cluster as this project does: those of its own state, or
// those of a cache when the remote is cached.
func Decode(e wire.Expect, cached bool, entries []model.KV) (model.Objects, []model.Rejected) {
	var objects model.Objects
	var rejected []model.Rejected
	for _, entry := range entries {
		if err := decode(e, cached, entry, &objects); err != nil {
			rejected = append(rejected, model.Rejected{Key: entry.Key, Error: err.Error()})
		}
	}
	return objects, rejected
}

func decode(e wire.Expect, cached bool, entry model.KV, into *model.Objects) error {
	if cluster, ok := strings.CutPrefix(entry.Key, wire.ClusterConfigPrefix+"/"); ok {
		c, err := decodeConfig(e, entry.Value)
		if err == nil {
			into.ClusterConfigs = append(into.ClusterConfigs, ModelClusterConfig(cluster, c))
		}
		return err
	}
	for _, r := range wire.Resources() {
		if name, ok := strings.CutPrefix(entry.Key, r.Prefix(e.Cluster, cached)); ok {
			return decodeResource(e, r, name, entry.Value, into)
		}
	}
	return fmt.Errorf("no kind has the key %s", entry.Key)
}

// decodeConfig reads any cluster's configuration, as a cluster of the same mesh does.
func decodeConfig(e wire.Expect, value []byte) (wire.ClusterConfig, error) {
	c, err := wire.DecodeClusterConfig(value)
	if err != nil {
		return c, err
	}
	return c, c.Validate(wire.ClusterInfo{MaxConnectedClusters: e.Layout.Max()})
}

func decodeResource(e wire.Expect, r wire.Resource, name string, value []byte, into *model.Objects) error {
	switch r {
	case wire.Nodes:
		n, err := wire.DecodeNode(name, value, e)
		return collect(&into.Nodes, n, err, ModelNode)
	case wire.Services:
		s, err := wire.DecodeService(name, value, e)
		if err != nil {
			return err
		}
		service, err := ModelService(s)
		return collect(&into.Services, service, err, func(s model.Service) model.Service { return s })
	case wire.EndpointSlices:
		s, err := wire.DecodeEndpointSlice(name, value, e)
		return collect(&into.EndpointSlices, s, err, ModelEndpointSlice)
	case wire.ServiceExports:
		s, err := wire.DecodeServiceExport(name, value, e)
		return collect(&into.ServiceExports, s, err, ModelServiceExport)
	case wire.Identities:
		i, err := wire.DecodeIdentity(name, value, e)
		return collect(&into.Identities, i, err, func(i wire.Identity) model.Identity { return ModelIdentity(e.Cluster, i) })
	case wire.IPs:
		ip, err := wire.DecodeIP(name, value, e)
		return collect(&into.Addresses, ip, err, func(ip wire.IP) model.Address { return ModelAddress(e.Cluster, ip) })
	}
	return nil
}

// collect adds what was decoded.
func collect[F, T any](into *[]T, from F, err error, translate func(F) T) error {
	if err == nil {
		*into = append(*into, translate(from))
	}
	return err
}
