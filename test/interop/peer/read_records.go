//go:build !before1.20

package main

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	clusterstore "github.com/cilium/cilium/pkg/clustermesh/store"
	"github.com/cilium/cilium/pkg/identity"
	identitycache "github.com/cilium/cilium/pkg/identity/cache"
	"github.com/cilium/cilium/pkg/ipcache"
	api "github.com/cilium/cilium/pkg/k8s/apis/cilium.io"
	nodetypes "github.com/cilium/cilium/pkg/node/types"
	"github.com/cilium/cilium/pkg/source"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// records keep what the parts of a reader hand on: nodes, services and addresses.
type records struct {
	mu        sync.Mutex
	nodes     map[nodetypes.Identity]nodetypes.Node
	services  map[string]*clusterstore.ClusterService
	addresses map[string]model.Address
	wrong     error // the first address that is none
}

func newRecords() *records {
	return &records{
		nodes:     map[nodetypes.Identity]nodetypes.Node{},
		services:  map[string]*clusterstore.ClusterService{},
		addresses: map[string]model.Address{},
	}
}

func (r *records) NodeUpdated(n nodetypes.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes[n.Identity()] = n
}

func (r *records) NodeDeleted(n nodetypes.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, n.Identity())
}

func (r *records) MergeExternalServiceUpdate(s *clusterstore.ClusterService) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.services[s.GetKeyName()] = s
}

func (r *records) MergeExternalServiceDelete(s *clusterstore.ClusterService) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.services, s.GetKeyName())
}

func (r *records) Upsert(key string, host net.IP, encryption uint8, meta *ipcache.K8sMetadata, id ipcache.Identity) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := recordedAddress(key)
	if err != nil && r.wrong == nil {
		r.wrong = err
	}
	a.HostIP, a.EncryptionKey, a.Identity = modelIP(host), encryption, uint32(id.ID)
	if meta != nil {
		a.Namespace, a.Pod = meta.Namespace, meta.PodName
		for name, p := range meta.NamedPorts {
			a.NamedPorts = append(a.NamedPorts, model.NamedPort{Name: name, Port: p.Port, Protocol: p.Proto.String()})
		}
		slices.SortFunc(a.NamedPorts, func(a, b model.NamedPort) int { return strings.Compare(a.Name, b.Name) })
	}
	r.addresses[key] = a
	return false, nil
}

func (r *records) Delete(key string, _ source.Source) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.addresses, key)
	return false
}

// recordedAddress is the address or prefix of a key of the IP cache.
func recordedAddress(key string) (model.Address, error) {
	if strings.Contains(key, "/") {
		p, err := netip.ParsePrefix(key)
		return model.Address{Prefix: p}, err
	}
	addr, err := netip.ParseAddr(key)
	return model.Address{Prefix: netip.PrefixFrom(addr, addr.BitLen()), Host: true}, err
}

// collect adds the objects of a kind.
func (r *records) collect(k model.Kind, into *model.Objects) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch k {
	case model.Nodes:
		for _, n := range r.nodes {
			if err := add(&into.Nodes, n); err != nil {
				return err
			}
		}
	case model.Services:
		for _, s := range r.services {
			if err := add(&into.Services, s); err != nil {
				return err
			}
		}
	case model.Addresses:
		into.Addresses = slices.AppendSeq(into.Addresses, maps.Values(r.addresses))
	}
	return r.wrong
}

// remoteIdentities are those that the allocator knows and that are not reserved.
func remoteIdentities(from *identitycache.CachingIdentityAllocator) []model.Identity {
	var all []model.Identity
	for id, array := range from.GetIdentityCache() {
		if id < identity.MinimalNumericIdentity {
			continue
		}
		i := modelIdentity("", uint32(id), array)
		for _, l := range i.Labels {
			if l.Key == api.PolicyLabelCluster {
				i.Cluster = l.Value
			}
		}
		all = append(all, i)
	}
	return all
}

// owner owns the identity allocator. It ignores changes of identities.
type owner struct{}

func (owner) UpdateIdentities(_, _ identity.IdentityMap) <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (owner) GetNodeSuffix() string { return "peer" }

// features counts no features.
type features struct{}

func (features) AddClusterMeshConfig(string, string) {}
func (features) DelClusterMeshConfig(string, string) {}
