// Tests of the behaviours in section E of docs/spec/xds.md:
//
//	 1 TestUnmodifiedClient; over three clusters: internal/agent, TestGRPCClientOverThreeClusters
//	 2 TestUnmodifiedClient
//	 3 TestServiceThatIsNotThere: any name that is asked for has its resources at once
//	 4 TestFailover, TestBackendsThatFail
//	 5 TestFailover (the long stream)
//	 6 TestFailover
//	 7 TestFailover, TestAssignments
//	 8 TestAssignments (a locality that only drains weighs 1)
//	 9 to 11 TestAssignments
//	12 does not apply: backends are IP addresses, here and in the clusters' etcds
//	13 TestServiceThatIsNotThere, TestIncremental
//	14 TestServiceThatIsNotThere: names of gRPC clients are never taken back; of Envoy's clusters,
//	   TestEnvoyWithStateOfTheWorld, TestIncremental
//	15 TestServiceThatIsNotThere: with the feature, which the bootstrap has
//	16 to 18 TestRestart; 18 for Envoy: TestIncremental
//	19, 20 TestOnlyWhatChangedIsSent
//	21 TestRejection
//	22 TestOnlyWhatChangedIsSent
//	23 TestThousandClients, TestBounds
//	24 TestEnvoyWithStateOfTheWorld, TestIncremental: a cluster never changes, so that none waits for
//	   endpoints again
//	25 TestEnvoyBootstrap, TestTLS, TestSecondServer, and all that dial with the bootstrap for gRPC

package xdsserver_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds"

	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestMain allows what grpc-go's client leaves behind: it never closes the reader of its certificate files.
func TestMain(m *testing.M) {
	if socket := os.Getenv(benchSocket); socket != "" { // the process of the clients of BenchmarkStreams
		if err := runClients(socket); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("google.golang.org/grpc/credentials/tls/certprovider/pemfile.(*watcher).run"))
}

// world is a view that a test controls, with a server of it.
type world struct {
	*viewtest.World
	t       *testing.T
	server  *xdsserver.Server
	metrics *xdsserver.Metrics
	log     *waittest.Output
	socket  string
	stop    func()
}

// newWorld starts a server on a unix socket that ends with the test.
func newWorld(t *testing.T, change ...func(*xdsserver.Params)) *world {
	t.Helper()
	w := &world{World: viewtest.New(t), t: t, socket: filepath.Join(t.TempDir(), "xds")}
	w.start(change...)
	t.Cleanup(func() { w.stop() })
	return w
}

// start starts another server on the same socket, like an agent that was started again.
func (w *world) start(change ...func(*xdsserver.Params)) {
	w.t.Helper()
	w.metrics, w.log = xdsserver.NewMetrics(), new(waittest.Output)
	p := xdsserver.Params{View: w.View, Zones: []string{"clusterset.local"}, Metrics: w.metrics, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	for _, f := range change {
		f(&p)
	}
	s, err := xdsserver.New(p)
	if err == nil {
		err = s.Listen("unix:" + w.socket)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = s
	w.stop = running(w.t, s, w.View)
}

type runner interface{ Run(context.Context) error }

// running runs all of them until the returned function is called.
func running(t *testing.T, all ...runner) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(all))
	for _, one := range all {
		go func() { ended <- one.Run(ctx) }()
	}
	return sync.OnceFunc(func() {
		cancel()
		for range all {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		}
	})
}

// backend is a gRPC server with the health service.
func backend(t *testing.T, address string) (port string, health *health.Server, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	waittest.Must(t, err)
	return serve(t, l)
}

func serve(t *testing.T, l net.Listener) (port string, h *health.Server, stop func()) {
	t.Helper()
	server, h := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(server, h)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	stop = sync.OnceFunc(func() {
		server.Stop()
		<-ended
	})
	t.Cleanup(stop)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, h, stop
}

// client is a gRPC program: grpc-go's own resolver, with the bootstrap that users get.
type client struct {
	t    *testing.T
	ctx  context.Context
	conn *grpc.ClientConn
}

func (w *world) dial(target string) *client {
	w.t.Helper()
	return dial(w.t, xdsserver.Bootstrap{Address: "unix:" + w.socket, Node: "test"}, target)
}

func dial(t *testing.T, b xdsserver.Bootstrap, target string) *client {
	t.Helper()
	text, err := b.GRPC()
	waittest.Must(t, err)
	return dialWith(t, text, target)
}

func dialWith(t *testing.T, bootstrap []byte, target string) *client {
	t.Helper()
	r, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	waittest.Must(t, err)
	conn, err := grpc.NewClient(target, grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()))
	waittest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, waittest.Context(t), conn}
}

// call makes one call, which fails at once when there is no backend, and returns the address of the backend that
// answered.
func (c *client) call() (ip string, err error) {
	var from peer.Peer
	_, err = healthpb.NewHealthClient(c.conn).Check(c.ctx, &healthpb.HealthCheckRequest{}, grpc.Peer(&from))
	if err != nil {
		return "", err
	}
	ip, _, _ = net.SplitHostPort(from.Addr.String())
	return ip, nil
}

// must makes one call that succeeds.
func (c *client) must() string {
	c.t.Helper()
	ip, err := c.call()
	if err != nil {
		c.t.Fatalf("a call failed: %v", err)
	}
	return ip
}

// until makes calls, none of which may fail, until a round of calls was answered by each of the wanted addresses, and
// by no others.
func (c *client) until(what string, wanted ...string) {
	c.t.Helper()
	seen := make(map[string]int)
	waittest.Until(c.t, what, func() bool {
		clear(seen)
		for range 20 * len(wanted) {
			seen[c.must()]++
		}
		for _, ip := range wanted {
			if seen[ip] == 0 {
				return false
			}
		}
		return len(seen) == len(wanted)
	})
}

// fails waits until calls fail at once, with an error that contains what.
func (c *client) fails(what string) {
	c.t.Helper()
	waittest.Try(c.t, "calls to fail with "+what, func() error {
		_, err := c.call()
		switch {
		case err == nil:
			return errors.New("a call succeeded")
		case !strings.Contains(err.Error(), what):
			return err
		}
		return nil
	})
}

// streams opens a connection to the server, for streams of the xDS protocol.
func (w *world) streams() discovery.AggregatedDiscoveryServiceClient {
	w.t.Helper()
	conn, err := grpc.NewClient("unix:"+w.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return discovery.NewAggregatedDiscoveryServiceClient(conn)
}
