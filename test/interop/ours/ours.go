// Package ours has the objects of interoperability tests in this project's terms: it
// encodes and decodes them with package wire.
package ours

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Encode writes the objects as this project does, kind by kind, in order.
func Encode(o model.Objects) []model.KV {
	var entries []model.KV
	for _, c := range o.ClusterConfigs {
		entries = append(entries, model.KV{Key: wire.ClusterConfigKey(c.Cluster), Value: clusterConfig(c).Encode()})
	}
	entries = append(entries, encoded(o.Nodes, translated[wire.Node])...)
	entries = append(entries, encoded(o.Services, translated[wire.Service])...)
	encoder := wire.NewSliceEncoder()
	defer encoder.Close()
	for _, s := range o.EndpointSlices {
		slice := translated[wire.EndpointSlice](s)
		entries = append(entries, model.KV{Key: slice.Key(), Value: encoder.Encode(slice)})
	}
	entries = append(entries, encoded(o.ServiceExports, translated[wire.ServiceExport])...)
	entries = append(entries, encoded(o.Identities, translated[wire.Identity])...)
	return append(entries, encoded(o.Addresses, address)...)
}

// encoded writes objects, each in this project's own type.
func encoded[F any, T interface {
	Key() string
	Encode() []byte
}](objects []F, own func(F) T) []model.KV {
	var entries []model.KV
	for _, o := range objects {
		entries = append(entries, model.KV{Key: own(o).Key(), Value: own(o).Encode()})
	}
	return entries
}

func clusterConfig(c model.ClusterConfig) wire.ClusterConfig {
	return wire.ClusterConfig{ID: c.ID, Capabilities: *translated[wire.Capabilities](c)}
}

func address(a model.Address) *wire.IPIdentityPair {
	pair, key := translated[wire.IPIdentityPair](a), wire.NewPrefixPair(a.Prefix)
	if a.Host {
		key = wire.NewHostPair(a.Prefix.Addr())
	}
	pair.IP, pair.Mask = key.IP, key.Mask
	return pair
}

// translated returns an object in this project's own type.
func translated[T, F any](from F) *T {
	to := new(T)
	if err := translate(to, from); err != nil {
		panic(err) // every address has a text
	}
	return to
}

// translate also translates prefixes and times of exports; an invalid prefix differs from all others.
func translate(to, from any) error {
	return model.Translate(to, from, wire.NewCIDR, func(c wire.CIDR) netip.Prefix {
		p, _ := c.Prefix()
		return p
	}, func(t time.Time) wire.ExportTime { return wire.ExportTime{Time: t} }, wire.ExportTime.UTC)
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
		return collect(&into.ClusterConfigs, c.Capabilities, err, func(m *model.ClusterConfig) { m.Cluster, m.ID = cluster, c.ID })
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
		return collect(&into.Nodes, n, err)
	case wire.Services:
		s, err := wire.DecodeService(name, value, e)
		return collect(&into.Services, s, err)
	case wire.EndpointSlices:
		s, err := wire.DecodeEndpointSlice(name, value, e)
		return collect(&into.EndpointSlices, s, err)
	case wire.ServiceExports:
		s, err := wire.DecodeServiceExport(name, value, e)
		return collect(&into.ServiceExports, s, err)
	case wire.Identities:
		i, err := wire.DecodeIdentity(name, value, e)
		return collect(&into.Identities, i, err, func(i *model.Identity) { i.Cluster = e.Cluster })
	case wire.IPs:
		ip, err := wire.DecodeIP(name, value, e)
		return collect(&into.Addresses, ip, err, func(a *model.Address) { a.Cluster = e.Cluster })
	}
	return nil
}

// collect adds a decoded object; complete sets the fields that are not part of the value.
func collect[T any](into *[]T, from any, err error, complete ...func(*T)) error {
	var to T
	if err == nil {
		err = translate(&to, from)
	}
	if err != nil {
		return err
	}
	for _, f := range complete {
		f(&to)
	}
	*into = append(*into, to)
	return nil
}
