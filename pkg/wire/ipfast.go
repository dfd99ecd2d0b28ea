package wire

import (
	"bytes"
	"encoding/base64"
	"math"
	"net"
	"net/netip"
	"strconv"

	"github.com/mesh-agent/mesh-agent/internal/base/plainjson"
)

// fastIP has the fields of a value that the fast path has read.
type fastIP struct {
	plainjson.Scanner
	addr, hostIP, namespace, pod []byte

	mask    [18]byte // its first maskLen bytes; the others are room for the decoder of base64
	maskLen int      // -1 for null
	id, key uint64
	ports   []NamedPort
	ignored []byte // metadata, service account
}

// decodeFast decodes values in the form that writers normally write, several times faster than encoding/json.
// For all other values it returns false, and decodeSlow decides: white space, escapes, text beyond ASCII,
// fields that are missing, unknown, repeated, in another order or in another spelling, odd numbers, addresses
// in unusual forms, a key that does not match, and all errors. When it returns true, decodeSlow would have
// returned the same; a fuzz test checks this.
func decodeFast(name string, value []byte) (ip IP, ok bool) {
	f := fastIP{Scanner: plainjson.NewScanner(value)}
	if !f.object() {
		return IP{}, false
	}
	if ip.Prefix, ok = f.prefix(name); !ok {
		return IP{}, false
	}
	if len(f.hostIP) > 0 {
		if ip.HostIP, ok = plainjson.Addr(f.hostIP); !ok {
			return IP{}, false
		}
	}
	ip.Host = f.maskLen < 0
	ip.Identity = uint32(f.id)
	ip.EncryptionKey = uint8(f.key)
	ip.Namespace = string(f.namespace)
	ip.Pod = string(f.pod)
	ip.Ports = f.ports
	return ip, true
}

// object reads the whole value: six fields that are always there, and four that
// are left out when they are empty.
func (f *fastIP) object() bool {
	return f.Literal(`{"IP":`) && f.readText(&f.addr) &&
		f.Literal(`,"Mask":`) && f.readMask() &&
		f.Literal(`,"HostIP":`) && f.readText(&f.hostIP) &&
		f.Literal(`,"ID":`) && f.readNumber(&f.id, math.MaxUint32) &&
		f.Literal(`,"Key":`) && f.readNumber(&f.key, math.MaxUint8) &&
		f.Literal(`,"Metadata":`) && f.readText(&f.ignored) &&
		(!f.Literal(`,"K8sNamespace":`) || f.readText(&f.namespace)) &&
		(!f.Literal(`,"K8sPodName":`) || f.readText(&f.pod)) &&
		(!f.Literal(`,"K8sServiceAccount":`) || f.readText(&f.ignored)) &&
		(!f.Literal(`,"NamedPorts":`) || f.readPorts()) &&
		f.Literal(`}`) && f.Done()
}

func (f *fastIP) readText(to *[]byte) (ok bool) {
	*to, ok = f.Text()
	return ok
}

func (f *fastIP) readNumber(to *uint64, max uint64) (ok bool) {
	*to, ok = f.Number(max)
	return ok
}

// readMask reads null or a mask in base64.
func (f *fastIP) readMask() bool {
	if f.Literal("null") {
		f.maskLen = -1
		return true
	}
	text, ok := f.Text()
	if !ok || len(text) > base64.StdEncoding.EncodedLen(net.IPv6len) {
		return false
	}
	var err error
	f.maskLen, err = base64.StdEncoding.Decode(f.mask[:], text)
	return err == nil
}

// readPorts reads the array of named ports.
func (f *fastIP) readPorts() bool {
	if !f.Literal("[") {
		return false
	}
	if f.Literal("]") {
		return true
	}
	for n := 1; n <= maxNamedPorts && f.readPort(); n++ {
		if !f.Literal(",") {
			return f.Literal("]")
		}
	}
	return false
}

// minNamedPort is the length of the shortest named port with its comma.
const minNamedPort = len(`{"Name":"","Port":1,"Protocol":""},`)

// readPort reads one named port and keeps it if it can be used.
func (f *fastIP) readPort() bool {
	var name, protocol []byte
	var port uint64
	if !(f.Literal(`{"Name":`) && f.readText(&name) &&
		f.Literal(`,"Port":`) && f.readNumber(&port, math.MaxUint16) &&
		f.Literal(`,"Protocol":`) && f.readText(&protocol) && f.Literal("}")) {
		return false
	}
	if len(name) > maxPortName || len(protocol) > maxPortName {
		return true // such strings would be allocated on the heap
	}
	known, ok := usablePort(string(name), port, string(protocol))
	if !ok {
		return true
	}
	if f.ports == nil {
		// Room for the largest possible number: this port, and one for each bracket that follows. A bracket may
		// also be in a string, so the length of the rest bounds the number too.
		rest := f.Rest()
		more := min(bytes.Count(rest, []byte("{")), len(rest)/minNamedPort, maxNamedPorts)
		f.ports = make([]NamedPort, 0, 1+more)
	}
	f.ports = append(f.ports, NamedPort{Name: string(name), Port: uint16(port), Protocol: known})
	return true
}

// prefix makes the prefix of the address and the mask, if their canonical text is the key's name.
func (f *fastIP) prefix(name string) (netip.Prefix, bool) {
	n := len(f.addr)
	if n == 0 || len(name) < n || name[:n] != string(f.addr) {
		return netip.Prefix{}, false
	}
	addr, ok := plainjson.Addr(f.addr)
	if !ok {
		return netip.Prefix{}, false
	}
	var text [len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")]byte
	if string(addr.AppendTo(text[:0])) != string(f.addr) {
		return netip.Prefix{}, false
	}
	bits := addr.BitLen()
	if f.maskLen < 0 {
		return netip.PrefixFrom(addr, bits), len(name) == n
	}
	ones, _ := net.IPMask(f.mask[:f.maskLen]).Size()
	length := strconv.AppendUint(append(text[:0], '/'), uint64(ones), 10)
	return netip.PrefixFrom(addr, ones), ones <= bits && name[n:] == string(length)
}
