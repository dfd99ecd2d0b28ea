package ours

import (
	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Identity returns an identity.
func Identity(i model.Identity) wire.Identity {
	identity := wire.Identity{ID: i.ID}
	for _, l := range i.Labels {
		identity.Labels = append(identity.Labels, wire.Label(l))
	}
	return identity
}

// ModelIdentity is the reverse of Identity.
func ModelIdentity(cluster string, i wire.Identity) model.Identity {
	identity := model.Identity{Cluster: cluster, ID: i.ID}
	for _, l := range i.Labels {
		identity.Labels = append(identity.Labels, model.Label(l))
	}
	return identity
}

// Address returns an address, or a prefix, with its identity.
func Address(a model.Address) *wire.IPIdentityPair {
	pair := wire.NewPrefixPair(a.Prefix)
	if a.Host {
		pair = wire.NewHostPair(a.Prefix.Addr())
	}
	pair.HostIP = a.HostIP.AsSlice()
	pair.Identity = a.Identity
	pair.EncryptionKey = a.EncryptionKey
	pair.Metadata = a.Metadata
	pair.Namespace, pair.Pod, pair.ServiceAccount = a.Namespace, a.Pod, a.ServiceAccount
	for _, p := range a.NamedPorts {
		pair.NamedPorts = append(pair.NamedPorts, wire.NamedPort(p))
	}
	return &pair
}

// ModelAddress returns what a reader keeps of an address: neither the metadata nor
// the service account.
func ModelAddress(cluster string, ip wire.IP) model.Address {
	address := model.Address{
		Cluster: cluster, Prefix: ip.Prefix, Host: ip.Host,
		HostIP:        ip.HostIP,
		Identity:      ip.Identity,
		EncryptionKey: ip.EncryptionKey,
		Namespace:     ip.Namespace,
		Pod:           ip.Pod,
	}
	for _, p := range ip.Ports {
		address.NamedPorts = append(address.NamedPorts, model.NamedPort(p))
	}
	return address
}
