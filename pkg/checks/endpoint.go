package checks

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// endpoint examines an endpoint without asking anybody.
func (f *File) endpoint(cfg *clientfile.Config, endpoint string, tls bool) {
	if !tls && !clientfile.OnThisMachine(endpoint) {
		f.add(codes.EndpointPlain, fmt.Sprintf("endpoints: %s is not encrypted: %s", endpoint, clientfile.PlainRisk), "")
	}
	host := hostOf(endpoint)
	if host == "" || slices.ContainsFunc(cfg.HostAliases, func(a clientfile.HostAlias) bool { return a.Hostname == host }) {
		return
	}
	if _, err := netip.ParseAddr(host); err == nil {
		if tls && !clientfile.OnThisMachine(endpoint) {
			f.add(codes.EndpointIsAddress, fmt.Sprintf("endpoints: %s has an address and no name: the server's certificate must be for %s", endpoint, host), "")
		}
		return
	}
	if why := notAName(host); why != "" {
		f.add(codes.EndpointHostImpossible, fmt.Sprintf("endpoints: %s: the host %q can be no name: %s", endpoint, host, why), "")
	}
}

// hostOf is the host of an endpoint that the agent's reader has accepted; empty
// for a socket.
func hostOf(endpoint string) string {
	if strings.HasPrefix(endpoint, "unix") {
		return ""
	}
	if strings.Contains(endpoint, "://") {
		u, err := url.Parse(endpoint)
		if err != nil {
			return ""
		}
		return u.Hostname()
	}
	host, _, _ := net.SplitHostPort(endpoint) // it was accepted with a port
	return host
}

// notAName says why DNS cannot have a name (RFC 1035, 2.3; underscores are in
// use), empty when it can.
func notAName(host string) string {
	host = strings.TrimSuffix(host, ".")
	if len(host) > 253 {
		return fmt.Sprintf("it has %d characters, and 253 are the most", len(host))
	}
	for label := range strings.SplitSeq(host, ".") {
		switch {
		case label == "":
			return "there is nothing between two of its dots"
		case len(label) > 63:
			return fmt.Sprintf("%q has %d characters, and 63 are the most", label, len(label))
		case label[0] == '-' || label[len(label)-1] == '-':
			return fmt.Sprintf("%q begins or ends with a hyphen", label)
		case strings.ContainsFunc(label, func(c rune) bool { return !inName(c) }):
			return fmt.Sprintf("%q has characters that are in no name", label)
		}
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; !strings.ContainsFunc(last, func(c rune) bool { return c < '0' || c > '9' }) {
		return "it looks like an address and is none"
	}
	return ""
}

func inName(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
