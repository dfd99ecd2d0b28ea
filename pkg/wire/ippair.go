package wire

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// IPIdentityPair is the form in which writers write an address or a prefix (wire.md §1.7). Readers use [IP].
type IPIdentityPair struct {
	IP             net.IP      `json:"IP"`
	Mask           net.IPMask  `json:"Mask"`   // nil for a host, raw mask bytes otherwise
	HostIP         net.IP      `json:"HostIP"` // the node; nil when there is none
	Identity       uint32      `json:"ID"`
	EncryptionKey  uint8       `json:"Key"`      // index; 0 is none
	Metadata       string      `json:"Metadata"` // readers ignore it
	Namespace      string      `json:"K8sNamespace,omitempty"`
	Pod            string      `json:"K8sPodName,omitempty"`
	ServiceAccount string      `json:"K8sServiceAccount,omitempty"`
	NamedPorts     []NamedPort `json:"NamedPorts,omitempty"` // sorted by name
}

// NamedPort is a port of a pod with a name.
type NamedPort struct {
	Name     string
	Port     uint16
	Protocol string
}

// NewHostPair returns a pair for a single address.
func NewHostPair(addr netip.Addr) IPIdentityPair { return IPIdentityPair{IP: addr.AsSlice()} }

// NewPrefixPair returns a pair for a prefix; one of full length is not the same
// entry as its single address.
func NewPrefixPair(p netip.Prefix) IPIdentityPair {
	c := NewCIDR(p)
	return IPIdentityPair{IP: c.IP, Mask: c.Mask}
}

// Name returns the name of the pair's key: the canonical text of the address,
// with the mask's length unless the mask is nil (wire.md §1.7).
func (p *IPIdentityPair) Name() string {
	text := p.IP.String()
	if p.Mask == nil {
		return text
	}
	ones, _ := p.Mask.Size()
	return text + "/" + strconv.Itoa(ones)
}

// Key returns the pair's key in its cluster's state.
func (p *IPIdentityPair) Key() string { return IPs.Key("", false, p.Name()) }

// Encode returns the value to write.
func (p *IPIdentityPair) Encode() []byte { return mustJSON(p) }

// maxPortName is the length of the longest name of a port (RFC 6335).
const maxPortName = 15

// usablePort checks a named port as readers do (wire.md §1.7): a port with an invalid name, an unknown protocol
// or no number is left out. The protocol ANY is left out too, which Cilium 1.20.2 also refuses. usablePort
// returns the protocol in capital letters; no protocol is TCP.
func usablePort(name string, port uint64, protocol string) (string, bool) {
	if port == 0 || !validPortName(name) {
		return "", false
	}
	if protocol == "" {
		return "TCP", true
	}
	for _, known := range [...]string{"TCP", "UDP", "SCTP"} {
		if strings.EqualFold(protocol, known) {
			return known, true
		}
	}
	return "", false
}

// validPortName applies the rules of IANA service names: at most 15 letters,
// digits and single inner hyphens, with at least one letter.
func validPortName(name string) bool {
	if name == "" || len(name) > maxPortName || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	letter := false
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letter = true
		case c >= '0' && c <= '9':
		case c == '-' && name[i-1] != '-':
		default:
			return false
		}
	}
	return letter
}
