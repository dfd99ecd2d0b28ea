package wire

import (
	"net"
	"net/netip"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// drawAddr draws an address that probably has several zero bytes in a row.
func drawAddr(t *rapid.T, what string) netip.Addr {
	octet := rapid.SampledFrom([]byte{0, 0, 0, 1, 10, 99, 100, 255})
	if rapid.Bool().Draw(t, what+" is IPv4") {
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(octet, 4, 4).Draw(t, what)))
	}
	return netip.AddrFrom16([16]byte(rapid.SliceOfN(octet, 16, 16).Draw(t, what)))
}

// drawPair draws an entry as writers may write it, and sometimes one that they do not write.
func drawPair(t *rapid.T) IPIdentityPair {
	text := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?`), rapid.Just(""), rapid.String(),
	)
	addr := drawAddr(t, "address")
	p := NewHostPair(addr)
	switch rapid.IntRange(0, 5).Draw(t, "kind of mask") {
	case 0, 1:
		p = NewPrefixPair(netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, "length")))
	case 2:
		p.Mask = net.IPMask(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "mask"))
	}
	if rapid.Bool().Draw(t, "has a host") {
		p.HostIP = drawAddr(t, "host").AsSlice()
	}
	p.Identity = rapid.OneOf(rapid.Uint32Range(0, 300), rapid.Uint32Range(131000, 197000), rapid.Uint32()).Draw(t, "identity")
	p.EncryptionKey = rapid.Uint8().Draw(t, "key")
	p.Metadata = text.Draw(t, "metadata")
	p.Namespace = text.Draw(t, "namespace")
	p.Pod = text.Draw(t, "pod")
	p.ServiceAccount = text.Draw(t, "service account")
	for range rapid.IntRange(0, 3).Draw(t, "ports") {
		p.NamedPorts = append(p.NamedPorts, NamedPort{
			Name:     text.Draw(t, "port name"),
			Port:     rapid.Uint16().Draw(t, "port"),
			Protocol: rapid.SampledFrom([]string{"TCP", "UDP", "SCTP", "udp", "ANY", "", "ICMP"}).Draw(t, "protocol"),
		})
	}
	return p
}

// TestBothPathsAgree: the fast path and encoding/json agree on entries as they are written, and on entries with a
// damaged byte.
func TestBothPathsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPair(t)
		name, value := p.Name(), p.Encode()
		if rapid.Bool().Draw(t, "damaged") {
			at := rapid.IntRange(0, len(value)-1).Draw(t, "at")
			value[at] = rapid.OneOf(rapid.SampledFrom([]byte(`"\,:{}[]0e.-N `)), rapid.Byte()).Draw(t, "byte")
		}
		fast, ok := decodeFast(name, value)
		if !ok {
			return
		}
		slow, err := decodeSlow(name, value)
		if err != nil || !reflect.DeepEqual(fast, slow) {
			t.Fatalf("%s = %s:\nfast %+v\nslow %+v, %v", name, value, fast, slow, err)
		}
	})
}

// TestPlainEntriesTakeTheFastPath: a plain entry never needs encoding/json.
func TestPlainEntriesTakeTheFastPath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.StringMatching(`[ !#-%'-;=?-Z_a-z]{0,40}`)
		p := drawPair(t)
		if addr := addrOf(p.IP); p.Mask != nil {
			p.Mask = net.CIDRMask(addr.BitLen()-1, addr.BitLen())
		}
		p.Metadata, p.Namespace, p.Pod = plain.Draw(t, "metadata"), plain.Draw(t, "namespace"), plain.Draw(t, "pod")
		p.ServiceAccount, p.NamedPorts = plain.Draw(t, "service account"), nil
		if addrOf(p.IP).Is4() != (len(p.IP) == 4) && p.Mask != nil {
			return // IPv4 in IPv6 with a mask: encoding/json decides to which family the mask belongs
		}
		if _, ok := decodeFast(p.Name(), p.Encode()); !ok {
			t.Fatalf("%s = %s is not taken", p.Name(), p.Encode())
		}
	})
}

// Not parallel: it counts allocations.
func TestTheFastPathAllocatesNothingButItsStrings(t *testing.T) {
	for name, v := range benchmarkIPs() {
		value := []byte(v.Value)
		ip, err := DecodeIP(v.Key, value, cluster2)
		must(t, err)
		want := float64(len(ip.Ports))
		if len(ip.Ports) > 0 {
			want++ // the slice of the ports
		}
		for _, s := range []string{ip.Namespace, ip.Pod} {
			if s != "" {
				want++
			}
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = DecodeIP(v.Key, value, cluster2) }); n != want {
			t.Errorf("%s: %v allocations, want %v", name, n, want)
		}
	}
}
