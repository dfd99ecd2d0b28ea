package ipcache

import (
	"fmt"
	"net/netip"
)

// ParsePrefix parses a prefix, or an address, which is a prefix of full length. The result is masked; an IPv4-mapped
// prefix becomes IPv4.
func ParsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("prefix %q: want an address such as 10.0.0.1, or a prefix such as 10.0.0.0/8", text)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < mappedBits {
			return p, fmt.Errorf("prefix %q: an IPv4-mapped prefix is at least %d bits long", text, mappedBits)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits)
	}
	return p.Masked(), nil
}
