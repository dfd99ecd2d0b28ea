package servers

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// one chooses a value at random.
func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// bytesOf are random bytes, up to a maximum length.
func bytesOf(r *rand.Rand, most int) []byte {
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// dnsName is a name of the world's, or a similar one.
func dnsName(r *rand.Rand) string {
	service, host := fmt.Sprint("svc", r.IntN(numServices+2)), fmt.Sprintf("10-%d-0-%d", 1+r.IntN(3), r.IntN(90))
	zone := one(r, "clusterset.local", "clusterset.local", "clusterset.local", "mesh.example", "example.com", "local")
	cluster := one(r, "c1", "c2", "evil", "own", "nobody")
	name := one(r,
		service+".ns.svc."+zone, service+".ns.svc."+zone, cluster+"."+service+".ns.svc."+zone, host+"."+cluster+"."+service+".ns.svc."+zone,
		"_http._tcp."+service+".ns.svc."+zone, "_"+service+"._udp."+service+".ns.svc."+zone, service+".ns.svc."+cluster+"."+zone,
		fmt.Sprintf("node%d.node.%s.%s", r.IntN(25), cluster, zone), fmt.Sprintf("%d.0.%d.10.in-addr.arpa", r.IntN(90), 1+r.IntN(2)),
		strings.Repeat("0.", 32)+"ip6.arpa", "dns-version."+zone, "ns.svc."+zone, zone, "", "svc."+zone, "*."+zone, "big.ns.svc."+zone, pulse+".ns.svc."+zone,
	)
	if r.IntN(4) == 0 { // with random upper and lower case (0x20)
		b := []byte(name)
		for i := range b {
			if b[i] >= 'a' && b[i] <= 'z' && r.IntN(2) == 0 {
				b[i] -= 'a' - 'A'
			}
		}
		name = string(b)
	}
	return name
}

// appendName writes a name in a form of RFC 1035 4.1.4, valid or not.
func appendName(r *rand.Rand, b []byte, name string) []byte {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" {
			continue
		}
		switch r.IntN(200) {
		case 0: // a pointer to any place: itself, the header, later data
			return append(b, 0xc0|byte(r.IntN(2)), byte(r.Uint32()))
		case 1:
			return append(b, 0xc0, byte(len(b)))
		case 2: // a wrong length, and the reserved ones
			b = append(append(b, byte(r.Uint32())), label...)
		case 3:
			label = string(bytesOf(r, 63))
			fallthrough
		default:
			b = append(append(b, byte(len(label))), label...)
		}
	}
	if r.IntN(200) == 0 {
		for range r.IntN(40) { // more than 255 bytes
			b = append(append(b, 63), strings.Repeat("a", 63)...)
		}
	}
	return append(b, 0)
}

// rrType is any type, mostly one that has answers.
func rrType(r *rand.Rand) uint16 {
	if r.IntN(10) == 0 {
		return uint16(r.Uint32())
	}
	return one(r, dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeSRV, dns.TypePTR, dns.TypeSOA, dns.TypeNS, dns.TypeTXT, dns.TypeANY, dns.TypeAXFR,
		dns.TypeIXFR, dns.TypeOPT, dns.TypeTSIG, dns.TypeSIG, dns.TypeHTTPS, dns.TypeCNAME, dns.TypeDS, dns.TypeMX, dns.TypeNone)
}

// appendRecord writes a record of any type, with data of any kind and a length that may be wrong.
func appendRecord(r *rand.Rand, b []byte) []byte {
	b = appendName(r, b, dnsName(r))
	b = binary.BigEndian.AppendUint16(b, rrType(r))
	b = binary.BigEndian.AppendUint16(b, one(r, dns.ClassINET, dns.ClassANY, uint16(r.Uint32())))
	b = binary.BigEndian.AppendUint32(b, r.Uint32())
	return appendData(r, b, bytesOf(r, 64))
}

func appendData(r *rand.Rand, b, data []byte) []byte {
	length := len(data)
	if r.IntN(20) == 0 {
		length = int(uint16(r.Uint32()))
	}
	return append(binary.BigEndian.AppendUint16(b, uint16(length)), data...)
}

// appendOPT writes an EDNS record (RFC 6891) with any size, version, flags and options.
func appendOPT(r *rand.Rand, b []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, 0), dns.TypeOPT)
	b = binary.BigEndian.AppendUint16(b, one(r, 0, 512, 1232, 4096, 65535, uint16(r.Uint32())))
	version := byte(0)
	if r.IntN(8) == 0 {
		version = byte(r.Uint32())
	}
	b = append(b, byte(r.IntN(16)/15), version)
	b = binary.BigEndian.AppendUint16(b, one(r, 0, 0x8000, uint16(r.Uint32())))
	var options []byte
	for range r.IntN(4) {
		options = binary.BigEndian.AppendUint16(options, one(r, dns.EDNS0NSID, dns.EDNS0SUBNET, dns.EDNS0COOKIE, dns.EDNS0EDE, dns.EDNS0PADDING, uint16(r.Uint32())))
		options = appendData(r, options, bytesOf(r, 24))
	}
	return appendData(r, b, options)
}

// packet is a question, whole or damaged.
func packet(r *rand.Rand) []byte {
	b := make([]byte, 12, 512)
	binary.BigEndian.PutUint16(b, uint16(r.Uint32()))
	flags := uint16(0x0100)
	if r.IntN(6) == 0 {
		flags = uint16(r.Uint32()) // any opcode, answers, truncated
	}
	binary.BigEndian.PutUint16(b[2:], flags)
	questions, answers, extra := 1, 0, 0
	if r.IntN(10) == 0 {
		questions, answers = r.IntN(4), r.IntN(3)
	}
	for range questions {
		b = appendName(r, b, dnsName(r))
		b = binary.BigEndian.AppendUint16(b, rrType(r))
		b = binary.BigEndian.AppendUint16(b, one(r, dns.ClassINET, dns.ClassINET, dns.ClassINET, dns.ClassCHAOS, dns.ClassANY, uint16(r.Uint32())))
	}
	for range answers {
		b = appendRecord(r, b)
	}
	for range one(r, 0, 0, 1, 1, 1, 1, 2, r.IntN(6)) {
		b = appendOPT(r, b)
		extra++
	}
	if r.IntN(20) == 0 {
		b = appendRecord(r, b)
		extra++
	}
	for i, n := range []int{questions, answers, 0, extra} {
		if r.IntN(30) == 0 {
			n = int(uint16(r.Uint32())) // a wrong count
		}
		binary.BigEndian.PutUint16(b[4+2*i:], uint16(n))
	}
	if r.IntN(2) == 0 {
		return b
	}
	return mutated(r, b)
}

// mutated is a changed packet: shorter, longer, with other bytes.
func mutated(r *rand.Rand, b []byte) []byte {
	b = slices.Clone(b)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(b) + 1)
		switch r.IntN(6) {
		case 0:
			b = b[:at]
		case 1:
			b = slices.Insert(b, at, bytesOf(r, 16)...)
		case 2:
			b = append(b, b[at:]...)
		case 3:
			b = slices.Delete(b, at, min(len(b), at+r.IntN(8)))
		default:
			if at < len(b) {
				b[at] = one(r, 0, 0xff, 0xc0, 0x3f, 0x40, b[at]^1<<r.IntN(8), byte(r.Uint32()))
			}
		}
	}
	return b[:min(len(b), 65535)]
}
