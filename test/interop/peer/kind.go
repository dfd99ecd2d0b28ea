package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/cilium/cilium/pkg/cidr"
	"github.com/cilium/cilium/pkg/kvstore/store"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// translated returns an object in the release's own type.
func translated[T, F any](from F) *T {
	to := new(T)
	if err := translate(to, from); err != nil {
		panic(err) // every address has a text
	}
	return to
}

// add adds an object of the release's own type.
func add[T any](into *[]T, from any) error {
	var one T
	if err := translate(&one, from); err != nil {
		return err
	}
	*into = append(*into, one)
	return nil
}

// translate knows prefixes and times of Kubernetes, too.
func translate(to, from any) error {
	return model.Translate(to, from, newCIDR, modelCIDR, metav1.NewTime, metav1.Time.UTC)
}

func newCIDR(p netip.Prefix) *cidr.CIDR {
	if !p.IsValid() {
		return nil
	}
	return cidr.NewCIDR(&net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
}

// modelCIDR leaves out bits of the host, as those do who use the prefix.
func modelCIDR(c *cidr.CIDR) netip.Prefix {
	if c == nil || c.IPNet == nil {
		return netip.Prefix{}
	}
	addr := modelIP(c.IP)
	ones, bits := c.Mask.Size()
	if bits != addr.BitLen() {
		return netip.Prefix{} // no mask of this family
	}
	return netip.PrefixFrom(addr, ones).Masked()
}

// modelIP unmaps: the text on the wire makes no difference.
func modelIP(ip net.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}
