// Package xdsserver tells gRPC programs and Envoys about the services of all clusters, by the protocol
// that both speak (xDS, version 3): aggregated streams, with the state of the world or incremental.
//
//	NAMESPACE/SERVICE:PORT                  listeners and routes for gRPC, clusters and endpoints for both
//	SERVICE.NAMESPACE.svc.ZONE:PORT         the same
//	NAMESPACE/SERVICE                       the only TCP port of each backend
//
// A listener has its route in it, so a gRPC client needs three answers. Endpoints are what
// [backends.Choose] chooses: its groups are the priorities, numbered without gaps, a region is a cluster,
// a zone is a zone, backends that terminate are DRAINING. An Envoy that asks for all clusters gets one
// for each TCP port of each service.
//
// A resource is made when the first client follows it, kept for all that do, and sent when it is another
// one than before, and only to those. Every name that can be one of a service has all its resources,
// with no endpoints when there are no backends: calls then fail at once, and clients never lose a
// resource that comes again later. A name that can be none has a listener without routes.
//
// No stream is taken before the view may say that something is absent: nobody learns that there is nothing
// because nothing is known yet. Versions have a prefix that no other process has.
//
// Clients are hostile until checked: how many streams there are, in all and of each peer, how many
// names each follows, how long requests are, and how many bytes clients make the server keep is bounded. What a
// client rejects is counted, logged at a bounded rate, and shown by [Server.Clients].
//
// Clusters are hostile, too: their texts are made valid and bounded where resources are made, and resources are
// bounded in bytes. Each resource is made and encoded alone, within the boundary of the server.
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

// MinMemory is the least memory with which each address has room for the longest answer, in bytes.
const MinMemory = 32 << 20

// Bounds of a connection.
const (
	maxRequest           = 1 << 20 // bytes
	maxHeaders           = 16 << 10
	streamsPerConnection = 16
	handshakeTimeout     = 10 * time.Second
	pingInterval         = time.Minute           // of the server, so that dead clients are found
	pingTimeout          = 20 * time.Second      // for the answer
	clientPings          = 10 * time.Second      // the least interval that a client may have
	readyInterval        = 50 * time.Millisecond // of looks whether the view is ready
)

// unixPrefix begins an address that is the path of a unix socket.
const unixPrefix = "unix:"

// Params says what a [Server] serves. View is required, the zero value of everything else is its
// default.
type Params struct {
	View     *view.View
	Asker    backends.Asker     // where the clients are
	Zones    []string           // of DNS, in which services have names; none: there are only the others
	TLS      *transport.TLS     // nil: TCP is plain
	Streams  transport.Limit    // at once, over TCP and the unix socket; zero: 2,000, and 100 of one address
	Names    int                // that a stream may follow of one type; 0: DefaultNames
	Memory   int64              // bytes of what clients make the server keep, an estimate; half as much again for answers; 0: DefaultMemory
	Outliers time.Duration      // interval at which clients look for backends that fail; 0: they do not
	Wait     time.Duration      // how long a stream waits until the view may deny, and an answer until there is room for it, before it is refused; 0: DefaultWait
	Metrics  *Metrics           // nil: nobody looks at them
	Boundary *boundary.Boundary // of each stream and resource; nil: failures are logged, and not counted
	Log      *slog.Logger       // nil: silence
}

// Server serves streams. [Server.Listen] opens its socket, [Server.Run] serves.
type Server struct {
	view     *view.View
	catalog  *catalog
	tls      *transport.TLS
	gate     *transport.Gate // of streams
	conns    *transport.Gate // of connections over TCP
	names    int
	memory   int64 // bytes of what clients make it keep
	wait     time.Duration
	metrics  *Metrics
	boundary *boundary.Boundary // of each stream and resource
	log      *slog.Logger
	saying   *rate.Limiter // of what clients reject
	now      func() time.Time
	ready    atomic.Bool // which the view stays

	listeners *transport.Listeners
	address   string
	served    atomic.Uint64
	stopping  context.Context // ends when the server stops, and all streams with it
	stop      context.CancelFunc

	mu       sync.Mutex
	last     uint64 // the number of the last stream
	clients  map[uint64]*client
	departed departed
}

// New returns a server that does not listen yet. The error names the parameter that is wrong.
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

// SplitAddress divides an address to listen on: a path after unix:, or HOST:PORT.
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

// Address is where it listens, with the port that was chosen when the wanted one was 0; empty before.
func (s *Server) Address() string { return s.address }

// Close closes what Listen opened, when Run is not called.
func (s *Server) Close() { s.listeners.Close() }

// Totals are how many answers and updates were sent, and how much was not taken.
func (s *Server) Totals() (sent, refused uint64) { return s.served.Load(), s.metrics.numRefused() }

// Run serves until ctx ends, whose error it returns, or the socket fails.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	token := s.view.Token(s.view.Position()) // what clients follow from now on is not older
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
		s.stop() // every stream ends as one that is complete: clients come again
		server.Stop()
		return nil
	})
	return cmp.Or(g.Wait(), ctx.Err())
}

// Clients are the streams that are open, in the order in which they came.
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

// Departed are the last streams that ended within 10 minutes, the last one first, without those of programs that
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

// noteEnd notes the end of a stream that has asked for something.
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

// ads is the service of aggregated streams.
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

// serve serves a stream, when there may be one more.
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
	defer s.noteEnd(c.client) // before it has let go of everything
	open := s.metrics.streams.WithLabelValues(v.String())
	open.Inc()
	defer open.Dec()
	return handle(c)
}

// contain handles a stream within the boundary.
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

// enter lists a client until leave is called.
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

// waitReady waits a little until everything is known, so that a program that starts together with its
// agent does not see its first calls fail. Longer would keep clients from a second server.
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
