package wire

import "strings"

// maxPortName is the length of the longest name of a port (RFC 6335).
const maxPortName = 15

// usablePort checks a named port as readers do (wire.md §1.7): one with an
// invalid name, an unknown protocol or no port is left out, and one of any
// protocol, which Cilium 1.20.2 refuses as well. It returns the protocol in
// capital letters; none is TCP.
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
