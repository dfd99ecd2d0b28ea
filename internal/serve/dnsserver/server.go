// Package dnsserver answers DNS questions about the services of all clusters, from the view. It serves the
// multicluster names of Kubernetes (mcs.md A, KEP-1645) below clusterset.local or any other zone. If configured, it
// also serves a zone of its own for the clusters, their nodes and addresses.
//
// A service that has addresses of its own for the mesh answers with these addresses. All other services answer as
// headless ones, with the backends that connections go to now ([backends.Choose]) and that take new connections: a
// bounded number of them, starting with a different one each time.
//
//	SERVICE.NAMESPACE.svc.ZONE                  A, AAAA, SRV
//	_PORT._PROTOCOL.SERVICE.NAMESPACE.svc.ZONE  SRV
//	HOST.CLUSTER.SERVICE.NAMESPACE.svc.ZONE     A, AAAA: one backend, by its host name or dashed address
//	CLUSTER.SERVICE.NAMESPACE.svc.ZONE          nothing: the name is reserved
//	dns-version.ZONE                            TXT
//
// The server never denies a name that may exist: before the view is ready, the answer for a name that is not found is
// SERVFAIL. After that, an answer may depend on the copy of a cluster that is not known to be up to date. Then it has
// an extended error (RFC 8914: Stale Answer, Stale NXDOMAIN Answer), which resolvers log and dig shows.
//
// [backends.Choose]: github.com/mesh-agent/mesh-agent/pkg/backends.Choose
package dnsserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// Defaults of [Params].
const (
	DefaultZone    = "clusterset.local"
	DefaultTTL     = 5 * time.Second
	DefaultAnswers = 32
	DefaultQueries = 1000
)

// refusalsLogged is the least interval of log messages about refused clients: anyone can cause them.
const refusalsLogged = time.Minute

// DefaultClients returns the networks of machines that are not on the internet: loopback, private, link-local and
// shared addresses.
func DefaultClients() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"),
	}
}

// Params has the settings of a [Server]. View is required; the zero value of each other field stands for its default.
type Params struct {
	View     *view.View
	Cluster  string             // the name of the own cluster
	Asker    backends.Asker     // the place of the clients
	Zones    []string           // of services; none: DefaultZone
	MeshZone string             // of clusters, nodes and addresses; empty: no such zone
	TTL      *time.Duration     // of answers, in whole seconds; nil: DefaultTTL
	Answers  int                // backends in an answer; 0: DefaultAnswers
	Clients  []netip.Prefix     // networks that may ask; nil: DefaultClients, and the networks and nodes of the own cluster
	Queries  int                // answered at once, at most a quarter of them for one client; 0: DefaultQueries
	TCP      transport.Limit    // connections at once; zero: 1,000, and 100 per client
	Metrics  *Metrics           // nil: not exported
	Boundary *boundary.Boundary // of each question; nil: failures are logged, and not counted
	Log      *slog.Logger       // nil: no log
}

// Server answers questions. [Server.Listen] opens its sockets, [Server.Run] answers the questions.
type Server struct {
	names    resolver
	known    doubts
	clients  []netip.Prefix
	ownToo   bool           // the networks of the own cluster may ask, too
	refusals rate.Sometimes // limits the log messages about refused clients
	queries  places         // for questions that are being answered
	open     places         // for connections
	metrics  *Metrics
	boundary *boundary.Boundary // of each question
	log      *slog.Logger

	packets     *net.UDPConn
	connections net.Listener
}

// New returns a server that does not listen yet. The error names the invalid parameter.
func New(p Params) (*Server, error) {
	if p.View == nil {
		return nil, errors.New("dnsserver: View is missing")
	}
	if len(p.Zones) == 0 {
		p.Zones = []string{DefaultZone}
	}
	if err := CheckZones(p.Zones, p.MeshZone); err != nil {
		return nil, fmt.Errorf("dnsserver: Zones: %w", err)
	}
	ttl := DefaultTTL
	if p.TTL != nil {
		ttl = *p.TTL
	}
	ownToo := p.Clients == nil
	if ownToo {
		p.Clients = DefaultClients()
	}
	if p.TCP == (transport.Limit{}) {
		p.TCP = transport.Limit{All: 1000, Peer: 100}
	}
	p.Metrics = cmp.Or(p.Metrics, NewMetrics())
	p.Boundary = cmp.Or(p.Boundary, boundary.New(p.Log).Part("dns"))
	queries := cmp.Or(p.Queries, DefaultQueries)
	seed := maphash.MakeSeed()
	s := &Server{
		names: resolver{
			view: p.View, own: p.Cluster, asker: p.Asker, zones: newZones(p.Zones, p.MeshZone), ttl: uint32(ttl / time.Second), //nolint:gosec // was checked
			most: cmp.Or(p.Answers, DefaultAnswers), seed: seed, kept: &keptAnswers{seed: seed},
		},
		known: doubts{view: p.View}, clients: p.Clients, ownToo: ownToo, refusals: rate.Sometimes{Interval: refusalsLogged},
		queries: p.Metrics.places("queries", transport.Limit{All: queries, Peer: max(1, queries/4)}), open: p.Metrics.places("connections", p.TCP),
		metrics: p.Metrics, boundary: p.Boundary, log: cmp.Or(p.Log, slog.New(slog.DiscardHandler)),
	}
	return s, nil
}

// CheckZones returns an error if the name of a zone is invalid, or is given twice.
func CheckZones(ofServices []string, mesh string) error {
	seen := make(map[string]bool)
	for _, name := range slices.Concat(ofServices, []string{mesh}) {
		if name == "" && mesh == "" {
			continue
		}
		if _, valid := dns.IsDomainName(name); !valid || dns.CanonicalName(name) == "." {
			return fmt.Errorf("%q is no domain name such as %s", name, DefaultZone)
		}
		canonical := dns.CanonicalName(name)
		if seen[canonical] {
			return fmt.Errorf("%s is given twice", name)
		}
		seen[canonical] = true
	}
	return nil
}

// Listen opens an address, HOST:PORT, for UDP and TCP. With port 0 both get the same free one.
func (s *Server) Listen(address string) error {
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("DNS cannot listen on %s: %w", address, err)
	}
	udp, err := listenUDP(tcp.Addr().String())
	if err != nil {
		_ = tcp.Close()
		return fmt.Errorf("DNS cannot listen on %s: %w", address, err)
	}
	s.packets, s.connections = udp, tcp
	if at, err := netip.ParseAddrPort(tcp.Addr().String()); err == nil && !at.Addr().IsUnspecified() {
		s.names.server = at.Addr().Unmap().WithZone("")
	}
	s.log.Info("Answering DNS", "address", s.Address())
	return nil
}

// Address returns the address that the server listens on. If the configured port is 0, it has the port that was
// chosen. It is empty before Listen.
func (s *Server) Address() string {
	if s.connections == nil {
		return ""
	}
	return s.connections.Addr().String()
}

// Close closes the sockets that Listen opened. It is for servers whose Run is not called.
func (s *Server) Close() {
	if s.connections != nil {
		_, _ = s.connections.Close(), s.packets.Close()
	}
}

// Totals returns how many questions were answered and refused.
func (s *Server) Totals() (answered, refused uint64) { return s.metrics.Totals() }

// Run answers until ctx ends or a socket is closed. It returns the error of ctx or of the socket.
func (s *Server) Run(ctx context.Context) error {
	return waiting.Together(ctx, s.serveUDP, s.serveTCP)
}
