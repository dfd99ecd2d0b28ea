package plainjson

import "net/netip"

// Addr reads an address from bytes, without making a string of them. It
// reports false for what it does not understand (IPv4 inside IPv6, zones) as
// for what is wrong. IPv4 is only understood in its canonical form.
func Addr(b []byte) (netip.Addr, bool) {
	for _, c := range b[:min(len(b), 5)] {
		switch c {
		case '.':
			a, ok := scanIPv4(b)
			return netip.AddrFrom4(a), ok
		case ':':
			a, ok := scanIPv6(b)
			return netip.AddrFrom16(a).Unmap(), ok
		}
	}
	return netip.Addr{}, false
}

func scanIPv4(b []byte) (a [4]byte, ok bool) {
	part, digits, value := 0, 0, 0
	for _, c := range b {
		if c == '.' {
			if digits == 0 || part == 3 {
				return a, false
			}
			a[part] = byte(value)
			part, digits, value = part+1, 0, 0
			continue
		}
		if c -= '0'; c > 9 || digits > 0 && value == 0 {
			return a, false
		}
		value = 10*value + int(c)
		if digits++; value > 255 {
			return a, false
		}
	}
	a[3] = byte(value)
	return a, part == 3 && digits > 0
}

func scanIPv6(b []byte) (a [16]byte, ok bool) {
	gap := -1 // where "::" stands, in bytes of a
	n, i := 0, 0
	if len(b) >= 2 && b[0] == ':' && b[1] == ':' {
		gap, i = 0, 2
	}
	for i < len(b) {
		group, digits := uint(0), 0
		for ; i < len(b) && digits <= 4; i, digits = i+1, digits+1 {
			h := hexDigit(b[i])
			if h > 15 {
				break
			}
			group = group<<4 | uint(h)
		}
		if digits == 0 || digits > 4 || n == 16 {
			return a, false
		}
		a[n], a[n+1] = byte(group>>8), byte(group)
		n += 2
		if i == len(b) {
			break
		}
		if b[i] != ':' || i+1 == len(b) {
			return a, false
		}
		if i++; b[i] == ':' {
			if gap >= 0 {
				return a, false
			}
			gap, i = n, i+1
		}
	}
	if gap < 0 || n == 16 {
		return a, gap < 0 && n == 16
	}
	tail := n - gap
	copy(a[16-tail:], a[gap:n])
	clear(a[gap : 16-tail])
	return a, true
}

// hexDigit returns the value of a digit, or more than 15.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	default:
		return 0xff
	}
}
