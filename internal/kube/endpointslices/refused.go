package endpointslices

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
)

// OwnNetworks know which addresses the own cluster has. An ipcache.Cache does. Its methods may be called by any goroutine.
type OwnNetworks interface {
	// IsOwn reports whether an address is in a network of the own cluster, or is that of one of its nodes.
	IsOwn(netip.Addr) bool
	// OwnRevision grows with every change of the own networks.
	OwnRevision() uint64
}

// Refused are the backends of a Service that are in no slice, because of their addresses.
type Refused struct {
	Backends int
	Example  string // of one of them: the reason
}

// note counts a backend if its address is refused, and reports whether it is. A reader of slices, such as an ingress
// controller, would give its clients access, with its own rights, to the target of the address: loopback, the metadata
// service of a cloud, or a pod of the own cluster that no remote cluster may offer (CVE-2021-25740).
func (r *Refused) note(b *backends.Backend, own func(netip.Addr) bool) bool {
	why := ""
	if special, is := claims.SpecialAddress(b.IP); is {
		why = "for special use: " + special.Name
	} else if own != nil && own(b.IP.Unmap()) {
		why = "one of the own cluster"
	} else {
		return false
	}
	if r.Backends++; r.Example == "" {
		r.Example = fmt.Sprintf("the address %s of cluster %s is %s", b.IP, b.Cluster, why)
	}
	return true
}

// ownAddresses are the addresses of the own cluster's Services, which are in no network that is known without
// a setting.
type ownAddresses struct {
	of    map[string][]netip.Addr // by Service, as "namespace/name"
	count map[netip.Addr]int      // how many Services have it
}

func newOwnAddresses() ownAddresses {
	return ownAddresses{make(map[string][]netip.Addr), make(map[netip.Addr]int)}
}

// set takes in the addresses of a Service, and returns those that no Service had.
func (o *ownAddresses) set(name string, svc *corev1.Service, deleted bool) (added []netip.Addr) {
	for _, a := range o.of[name] {
		if o.count[a]--; o.count[a] == 0 {
			delete(o.count, a)
		}
	}
	before := o.of[name]
	delete(o.of, name)
	if deleted {
		return nil
	}
	for _, text := range svc.Spec.ClusterIPs {
		a, err := netip.ParseAddr(text) // fails for a headless one
		if err != nil {
			continue
		}
		if o.count[a]++; o.count[a] == 1 && !slices.Contains(before, a) {
			added = append(added, a)
		}
		o.of[name] = append(o.of[name], a)
	}
	return added
}

// isOwn reports whether an address is one of the own cluster.
func (t *term) isOwn(a netip.Addr) bool {
	return t.addresses.count[a] > 0 || t.OwnNetworks.IsOwn(a)
}
