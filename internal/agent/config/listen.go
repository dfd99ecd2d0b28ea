package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// ListenConfig are the settings of the listeners, and of the clients over TCP.
type ListenConfig struct {
	Insecure    bool   `flag:"listen-insecure" help:"permit plain text on an address that other machines reach; all of them can then read everything"`
	Names       string `flag:"listen-names" help:"more host names of the HTTP API, separated by commas; .example.org means all names that end with it. Requests for other names are refused (docs/api-security.md)"`
	TLSCert     string `flag:"tls-cert-file" help:"certificate of the HTTP API and of xDS, which then use TLS over TCP; the agent reads a changed file again"`
	TLSKey      string `flag:"tls-key-file" help:"key of --tls-cert-file"`
	Probes      string `flag:"probe-listen" help:"further address for plain /healthz and /readyz alone, for a kubelet, which has no client certificate; none by default"`
	UI          bool   `flag:"ui" help:"serve the web page at /ui/ of the HTTP API (docs/ui.md)"`
	TLSClientCA string `flag:"tls-client-ca-file" help:"certificate authorities of the clients; a client over TCP must then show a certificate of one of them"`

	Limits ListenLimits `subject:"Limits of the HTTP API"`
}

// hostNames returns the host names that a request may be for. On an address that other machines reach, clients use the
// names of Kubernetes Services, too. These names are not public, so a web page cannot use them for DNS rebinding.
func hostNames(c ListenConfig) (names []string, err error) {
	for name := range strings.SplitSeq(c.Names, ",") {
		name = strings.TrimSpace(name)
		if problems := validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimPrefix(name, "."))); c.Names != "" && len(problems) > 0 {
			return nil, fmt.Errorf("%q is no name of a host, such as node-1.example.org or .example.org", name)
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if c.Insecure || c.TLSCert != "" {
		names = append(names, ".svc", ".svc.cluster.local")
	}
	return names, nil
}

func (c *Config) parseListen(wrong *mistakes) {
	l, listen := c.Listening, c.Listen
	c.HostNames = parsed(wrong, "listen-names", hostNames, l)
	switch {
	case (l.TLSCert == "") != (l.TLSKey == ""):
		wrong.note("tls-cert-file/tls-key-file", errors.New("a certificate and its key are given together"))
	case l.TLSCert == "" && l.TLSClientCA != "":
		wrong.note("tls-client-ca-file", errors.New("clients have certificates with TLS only: give --tls-cert-file and --tls-key-file, too"))
	}
	if l.Probes != "" {
		wrong.note("probe-listen", checkAddress(l.Probes, "0.0.0.0:10979"))
	}
	host, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		wrong.note("listen", fmt.Errorf("%q is no address with a port, such as %s", listen, api.DefaultListen))
	default:
		wrong.note("listen", l.checkHost(host, listen, "a loopback address such as "+api.DefaultListen))
	}
}

// checkHost returns an error for an address that other machines reach in plain text by accident.
func (c ListenConfig) checkHost(host, address, instead string) error {
	if isLoopback(host) || c.TLSCert != "" || c.Insecure {
		return nil
	}
	return fmt.Errorf("%q may be reached by other machines, and the agent would not authenticate them: listen on %s, "+
		"or give --tls-cert-file, --tls-key-file and --tls-client-ca-file, or --listen-insecure if everyone there may read everything", address, instead)
}

// isLoopback reports whether other machines cannot reach an address to listen on. A name other than localhost may
// resolve to any address.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// ListenLimits limit what clients over TCP may have at the same time, in total and per address
// (docs/api-security.md). The unix socket has no such limits.
type ListenLimits struct {
	Connections        uint32 `flag:"listen-max-connections" rule:"permits clients" help:"maximum number of TCP connections at the same time"`
	ConnectionsPerPeer uint32 `flag:"listen-max-connections-per-peer" rule:"permits clients" help:"maximum number of TCP connections from one address (an IPv6 /64); the limit of loopback is the total minus this number"`
	Watches            uint32 `flag:"listen-max-watches" rule:"permits clients" help:"maximum number of watches over TCP at the same time"`
	WatchesPerPeer     uint32 `flag:"listen-max-watches-per-peer" rule:"permits clients" help:"maximum number of watches from one address; the limit of loopback is the total minus this number"`
	Answers            uint32 `flag:"listen-max-answers" rule:"permits clients" help:"maximum number of other requests over TCP at the same time, such as lists"`
	AnswersPerPeer     uint32 `flag:"listen-max-answers-per-peer" rule:"permits clients" help:"maximum number of other requests from one address; the limit of loopback is the total minus this number"`
	States             uint32 `flag:"listen-max-states" rule:"permits clients" help:"maximum number of watches over TCP that receive their initial state, or are far behind, at the same time"`
	StatesPerPeer      uint32 `flag:"listen-max-states-per-peer" rule:"permits clients" help:"maximum number of these watches from one address, also from loopback"`
}

// DefaultListenLimits returns the limits without any setting.
func DefaultListenLimits() ListenLimits {
	d := transport.DefaultLimits()
	return ListenLimits{
		Connections: uint32(d.Connections.All), ConnectionsPerPeer: uint32(d.Connections.Peer),
		Watches: uint32(d.Watches.All), WatchesPerPeer: uint32(d.Watches.Peer),
		Answers: uint32(d.Answers.All), AnswersPerPeer: uint32(d.Answers.Peer),
		States: uint32(d.States.All), StatesPerPeer: uint32(d.States.Peer),
	}
}

// connectionMemory is the most memory that a connection takes while it waits, with its goroutine and its buffers,
// doubled to leave as much for other things. With less memory there are fewer connections.
const connectionMemory = 128 << 10

// OfServer returns the limits of the server. With little memory (GOMEMLIMIT), it permits fewer connections.
func (c ListenLimits) OfServer() transport.Limits {
	limit := func(all, peer uint32) transport.Limit { return transport.Limit{All: int(all), Peer: int(peer)} }
	return transport.Limits{
		Connections: limit(withinMemory(c.Connections, connectionMemory), withinMemory(c.ConnectionsPerPeer, 4*connectionMemory)),
		Watches:     limit(c.Watches, c.WatchesPerPeer),
		Answers:     limit(c.Answers, c.AnswersPerPeer),
		States:      limit(c.States, c.StatesPerPeer),
	}
}

// withinMemory returns n, or the number for which there is memory if that is smaller.
func withinMemory(n uint32, each int64) uint32 {
	return uint32(min(int64(n), max(1, debug.SetMemoryLimit(-1)/each))) //nolint:gosec // not more than n
}
