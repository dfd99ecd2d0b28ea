package main

import (
	"net"
	"net/netip"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/ipcache"
	"github.com/cilium/cilium/pkg/kvstore/store"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

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
	pair := &identity.IPIdentityPair{
		IP:           a.Prefix.Addr().AsSlice(),
		HostIP:       a.HostIP.AsSlice(),
		ID:           identity.NumericIdentity(a.Identity),
		Key:          a.EncryptionKey,
		Metadata:     a.Metadata,
		K8sNamespace: a.Namespace,
		K8sPodName:   a.Pod,
	}
	setServiceAccount(pair, a.ServiceAccount)
	if !a.Host {
		pair.Mask = net.CIDRMask(a.Prefix.Bits(), a.Prefix.Addr().BitLen())
	}
	for _, p := range a.NamedPorts {
		pair.NamedPorts = append(pair.NamedPorts, identity.NamedPort(p))
	}
	return pair
}

func modelAddress(cluster string, p *identity.IPIdentityPair) model.Address {
	addr := modelIP(p.IP)
	address := model.Address{
		Cluster: cluster,
		Prefix:  netip.PrefixFrom(addr, addr.BitLen()), Host: p.IsHost(),
		HostIP:         modelIP(p.HostIP),
		Identity:       uint32(p.ID),
		EncryptionKey:  p.Key,
		Metadata:       p.Metadata,
		Namespace:      p.K8sNamespace,
		Pod:            p.K8sPodName,
		ServiceAccount: serviceAccount(p),
	}
	if !address.Host {
		ones, _ := p.Mask.Size()
		address.Prefix = netip.PrefixFrom(addr, ones)
	}
	for _, port := range p.NamedPorts {
		address.NamedPorts = append(address.NamedPorts, model.NamedPort(port))
	}
	return address
}
