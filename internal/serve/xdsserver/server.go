// Package xdsserver serves the services of all clusters to gRPC programs and Envoys, with the protocol that both use
// (xDS, version 3): aggregated streams, with the state of the world or incremental.
//
//	NAMESPACE/SERVICE:PORT                  listeners and routes for gRPC, clusters and endpoints for both
//	SERVICE.NAMESPACE.svc.ZONE:PORT         the same
//	NAMESPACE/SERVICE                       the only TCP port of each backend
//
// A listener contains its route, so a gRPC client needs three answers. The endpoints are the result of
// [backends.Choose]: its groups become the priorities, numbered without gaps. A region is a cluster, a zone is a zone.
// Backends that terminate are DRAINING. An Envoy that asks for all clusters gets one for each TCP port of each
// service.
//
// A resource is made when the first client follows it, and kept while at least one client follows it. It is sent only
// to these clients, and only when it has changed. Each name that is valid for a service has all its resources, with no
// endpoints when there are no backends: then calls fail at once, and clients never lose a resource that the server
// would add again later. A name that is not valid has a listener without routes.
//
// No stream is served before the view may report that an object is absent: otherwise clients would see as absent all
// objects that are not read yet. Versions have a prefix that is unique to the process.
//
// Clients are hostile until checked. There are bounds for the number of streams, in all and of each peer, for the
// number of names that each follows, for the length of requests, and for the bytes that clients make the server keep.
// Answers that a client rejects are counted, logged at a bounded rate, and shown by [Server.Clients].
//
// Clusters are hostile, too: the server makes their texts valid and bounded when it makes resources, and bounds
// resources in bytes. Each resource is made and encoded alone, within the boundary of the server.
//
// Concurrency: all methods of a [Server] may be called by any goroutine, once Listen has returned.
//
// [backends.Choose]: github.com/mesh-agent/mesh-agent/pkg/backends.Choose
package xdsserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// Defaults of [Params].
const (
	DefaultStreams        = 2000
	DefaultStreamsPerPeer = 100
	DefaultNames          = 1000
	DefaultMemory         = 64 << 20 // bytes
	DefaultWait           = 5 * time.Second
)

// MinMemory is the least memory with which each address has enough for the longest answer, in bytes.
const MinMemory = 32 << 20

// Bounds of a connection.
const (
	maxRequest           = 1 << 20 // bytes
	maxHeaders           = 16 << 10
	streamsPerConnection = 16
	handshakeTimeout     = 10 * time.Second
	pingInterval         = time.Minute           // of the server, to find dead clients
	pingTimeout          = 20 * time.Second      // for the answer to a ping
	clientPings          = 10 * time.Second      // the least interval of pings that a client may use
	readyInterval        = 50 * time.Millisecond // of checks while a stream waits
)

// unixPrefix is the prefix of an address that is the path of a unix socket.
const unixPrefix = "unix:"

// Params has the settings of a [Server]. View is required; the zero value of each other field stands for its default.
type Params struct {
	View     *view.View
	Asker    backends.Asker     // the place of the clients
	Zones    []string           // DNS zones in which services have names; none: only NAMESPACE/SERVICE names are served
	TLS      *transport.TLS     // nil: TCP without TLS
	Streams  transport.Limit    // at once, over TCP and the unix socket; zero: 2,000, and 100 per address
	Names    int                // the most that a stream may follow of one type; 0: DefaultNames
	Memory   int64              // estimated bytes that clients may make the server keep, plus half of it for answers; 0: DefaultMemory
	Outliers time.Duration      // of outlier detection in clients; 0: none
	Wait     time.Duration      // how long a stream waits until the view may report absence, and an answer for room, before it is refused; 0: DefaultWait
	Metrics  *Metrics           // nil: not exported
	Boundary *boundary.Boundary // of each stream and resource; nil: failures are logged, and not counted
	Log      *slog.Logger       // nil: no log
}

// Server serves streams. [Server.Listen] opens its socket, [Server.Run] serves the clients.
type Server struct {
	view     *view.View
	catalog  *catalog
	tls      *transport.TLS
	gate     *transport.Gate // of streams
	conns    *transport.Gate // of connections over TCP
	names    int
	memory   int64 // bytes that clients may make it keep
	wait     time.Duration
	metrics  *Metrics
	boundary *boundary.Boundary // of each stream and resource
	log      *slog.Logger
	saying   *rate.Limiter // of messages about rejected answers
	now      func() time.Time
	ready    atomic.Bool // the view may report absence, now and later

	listeners *transport.Listeners
	address   string
	served    atomic.Uint64
	stopping  context.Context // ends when the server stops, and ends all streams
	stop      context.CancelFunc

	mu       sync.Mutex
	last     uint64 // the number of the last stream
	clients  map[uint64]*client
	departed departed
}

// New returns a server that does not listen yet. The error names the invalid parameter.
func New(p Params) (*Server, error) {
	if p.View == nil {
		return nil, errors.New("xdsserver: View is missing")
	}
	if p.Streams == (transport.Limit{}) {
		p.Streams = transport.Limit{All: DefaultStreams, Peer: DefaultStreamsPerPeer}
	}
	p.Boundary = cmp.Or(p.Boundary, boundary.New(p.Log).Part("xds"))
	p.Metrics, p.Log = cmp.Or(p.Metrics, NewMetrics()), cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails
	s := &Server{
		view: p.View, tls: p.TLS, catalog: newCatalog(p, hex.EncodeToString(random)+"."),
		gate: transport.NewGate(p.Streams, p.Metrics.refusals(tooManyStreams)), conns: transport.NewGate(p.Streams, p.Metrics.refusals(tooManyConnections)),
		names: cmp.Or(p.Names, DefaultNames), memory: cmp.Or(p.Memory, DefaultMemory), wait: cmp.Or(p.Wait, DefaultWait), metrics: p.Metrics, boundary: p.Boundary, log: p.Log, saying: rate.NewLimiter(1, 10), now: time.Now,
		listeners: new(transport.Listeners), clients: make(map[uint64]*client),
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// SplitAddress splits an address to listen on: a path after unix:, or HOST:PORT.
func SplitAddress(address string) (tcp, socket string) {
	if path, found := strings.CutPrefix(address, unixPrefix); found {
		return "", path
	}
	return address, ""
}

// Listen opens an address: HOST:PORT, or unix:PATH. The error is a [*transport.ListenError].
func (s *Server) Listen(address string) error {
	tcp, socket := SplitAddress(address)
	l, err := transport.Listen(transport.Options{Address: tcp, Socket: socket, TLS: s.tls, Protocols: []string{"h2"}, Connections: s.conns, Flag: "--xds", Log: s.log})
	if err != nil {
		return fmt.Errorf("xDS: %w", err)
	}
	s.listeners, s.address = l, l.Address
	if l.Socket != "" {
		s.address = unixPrefix + l.Socket
	}
	return nil
}

// Accept makes Run serve the connections of a listener, too, and close it. It is for clients in the same process.
func (s *Server) Accept(l net.Listener) { s.listeners.All = append(s.listeners.All, l) }

// Address returns the address that the server listens on. If the configured port is 0, it has the port that was
// chosen. It is empty before Listen.
func (s *Server) Address() string { return s.address }

// Close closes the sockets that Listen opened. It is for servers whose Run is not called.
func (s *Server) Close() { s.listeners.Close() }

// Totals returns how many answers and updates were sent, and how many connections, streams and requests were refused.
func (s *Server) Totals() (sent, refused uint64) { return s.served.Load(), s.metrics.numRefused() }

// Run serves until ctx ends or a socket fails. It returns the error of ctx or of the socket.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	token := s.view.Token(s.view.Position()) // resources that clients follow from now on are not older
	coming := newIntake(s.memory)
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(streamsPerConnection), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: clientPings, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true), grpc.StreamInterceptor(s.contain), grpc.StatsHandler(coming), grpc.InTapHandle(coming.open),
	)
	discovery.RegisterAggregatedDiscoveryServiceServer(server, ads{s: s})
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return s.catalog.run(running, token) })
	for _, l := range s.listeners.All {
		g.Go(guard.Func(func() error {
			if err := server.Serve(coming.listener(l)); err != nil && running.Err() == nil { // it may have been stopped already
				return fmt.Errorf("xDS on %s: %w", s.address, err)
			}
			return nil
		}))
	}
	g.Go(func() error {
		<-running.Done()
		s.stop() // all streams end without an error, and clients reconnect
		server.Stop()
		return nil
	})
	return cmp.Or(g.Wait(), ctx.Err())
}

// Clients returns the open streams, in the order in which they were opened.
func (s *Server) Clients() []Client {
	s.mu.Lock()
	all := slices.SortedFunc(maps.Values(s.clients), func(a, b *client) int { return cmp.Compare(a.Number, b.Number) })
	s.mu.Unlock()
	shown := make([]Client, 0, len(all))
	for _, c := range all {
		shown = append(shown, c.show(s.catalog.without))
	}
	return shown
}

// Departed returns the streams that ended within the last 10 minutes, the latest first. It leaves out programs that
// have another stream now. At most 10 names of a type are kept.
func (s *Server) Departed() (all []Client) {
	open := make(map[program]struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.mu.Lock()
		open[program{c.from, c.Node, c.Program}] = struct{}{}
		c.mu.Unlock()
	}
	s.departed.expire(s.now())
	for _, d := range slices.Backward(s.departed) {
		if _, back := open[d.program()]; !back {
			all = append(all, d.Client)
		}
	}
	return all
}

// noteEnd adds a stream that has ended to the departed ones, if the client has asked for resources.
func (s *Server) noteEnd(c *client) {
	shown := c.departs(s.now())
	if len(shown.Follows) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c.Number)
	s.departed.expire(shown.Gone)
	s.departed.add(shown, c.from)
}

// ads is the gRPC service of aggregated streams.
type ads struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	s *Server
}

// StreamAggregatedResources serves a stream with the state of the world.
func (a ads) StreamAggregatedResources(to discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return a.s.serve(to.Context(), WholeState, func(c *clientStream) error {
		from := &received[*discovery.DiscoveryRequest]{from: to, admit: c.admitWhole, c: c}
		return from.or(sotw.NewServer(a.s.stopping, c, c).StreamHandler(wholeState{to, from}, resource.AnyType))
	})
}

// DeltaAggregatedResources serves an incremental stream.
func (a ads) DeltaAggregatedResources(to discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return a.s.serve(to.Context(), Incremental, func(c *clientStream) error {
		from := &received[*discovery.DeltaDiscoveryRequest]{from: to, admit: c.admitDelta, c: c}
		return from.or(delta.NewServer(a.s.stopping, c, c).DeltaStreamHandler(incremental{to, from}, resource.AnyType))
	})
}

// serve serves a stream, if one more is allowed.
func (s *Server) serve(ctx context.Context, v Variant, handle func(*clientStream) error) error {
	from, _ := peer.FromContext(ctx)
	address := transport.PeerOf(plainAddr(from.Addr))
	leave, ok := s.gate.Enter(address)
	if !ok {
		return status.Error(codes.ResourceExhausted, "there are too many streams")
	}
	defer leave()
	c := &clientStream{s: s, ctx: ctx, client: &client{Client: Client{Variant: v, Since: s.now(), Peer: "unix"}}}
	if address.IsValid() {
		c.Peer = from.Addr.String()
	}
	c.from = address
	defer s.enter(c.client)()
	c.owner = ownerOf(address, c.Number)
	if !s.waitReady(ctx) {
		s.metrics.refused.WithLabelValues(tooEarly).Inc()
		return status.Error(codes.Unavailable, "the agent still reads the clusters")
	}
	defer c.leave()
	defer s.noteEnd(c.client) // before c.leave removes its names
	open := s.metrics.streams.WithLabelValues(v.String())
	open.Inc()
	defer open.Dec()
	return handle(c)
}

// contain runs the handler of a stream within the boundary.
func (s *Server) contain(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	client := "unknown"
	if from, ok := peer.FromContext(stream.Context()); ok {
		client = from.Addr.String()
	}
	err := s.boundary.Run(func() error { return handle(service, stream) }, "client", client)
	if errors.Is(err, boundary.ErrInternal) {
		return status.Error(codes.Internal, err.Error())
	}
	return err
}

// enter adds a client to the list, until leave is called.
func (s *Server) enter(c *client) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	n := s.last
	c.Number = n
	s.clients[n] = c
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.clients, n)
	}
}

// waitReady waits for a short time until the view may report absence, so that the first calls of a program that starts
// together with its agent do not fail. A longer wait would keep clients from using a second server.
func (s *Server) waitReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	for !s.ready.Load() {
		if ready, _ := s.view.MayDeny(); ready {
			s.ready.Store(true)
		} else if waiting.Sleep(ctx, readyInterval) != nil {
			return false
		}
	}
	return true
}
