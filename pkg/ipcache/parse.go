package ipcache

import (
	"fmt"
	"net/netip"
)

// ParsePrefix takes a prefix, or an address, which stands for itself alone. What it returns is masked, and of
// IPv4 when it was an IPv4-mapped one.
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
