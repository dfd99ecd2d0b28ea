package xdsserver_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestFailover: the preferred cluster drains, disappears and returns, without one failed call (xds.md E 4, 5, 6, 7).
func TestFailover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, health, _ := backend(t, "127.0.0.2:0")
	second, _, _ := backend(t, "127.0.0.3:0")
	third, _, _ := backend(t, "127.0.0.4:0")
	own := func(state string) {
		w.Play(t, fmt.Sprintf("service own shop/cart affinity=local 127.0.0.2,ports=http:%s%s", first, state))
	}
	east := func(state string) {
		w.Play(t, fmt.Sprintf("service east shop/cart 127.0.0.3,ports=http:%s%s", second, state))
	}
	w.Play(t, fmt.Sprintf("service west shop/cart 127.0.0.4,ports=http:%s\nuse west demoted", third))
	own("")
	east("")
	c := w.dial("xds:///shop/cart:http")
	c.until("the own cluster to answer", "127.0.0.2")

	long, err := healthpb.NewHealthClient(c.conn).Watch(c.ctx, &healthpb.HealthCheckRequest{})
	waittest.Must(t, err)
	if m, err := long.Recv(); err != nil || m.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v %v", m, err)
	}
	own(",state=terminating")
	c.until("calls to go to the second group while the first drains", "127.0.0.3")
	health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	if m, err := long.Recv(); err != nil || m.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("a stream to a backend that drains: %v %v", m, err)
	}
	health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	own("")
	c.until("calls to go back", "127.0.0.2")

	east(",state=dead") // the group in the middle is empty: the last one is numbered after the first
	w.Play(t, "service own shop/cart affinity=local")
	c.until("calls to go to the last group", "127.0.0.4")
	own("")
	c.until("calls to go back again", "127.0.0.2")
	if n := w.rejected(); n != 0 {
		t.Errorf("%d answers were rejected: %s", n, w.log)
	}
}

// TestBackendsThatFail: a failed backend that is still in the list is avoided (E 4, 6).
func TestBackendsThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, _, stop := backend(t, "127.0.0.2:0")
	second, _, _ := backend(t, "127.0.0.3:0")
	w.Play(t, fmt.Sprintf("service own shop/cart affinity=local 127.0.0.2,ports=http:%s\nservice east shop/cart 127.0.0.3,ports=http:%s", first, second))
	c := w.dial("xds:///shop/cart:http")
	c.until("the own cluster to answer", "127.0.0.2")
	stop()
	waittest.Until(t, "the other one to answer", func() bool {
		ip, err := c.call()
		return err == nil && ip == "127.0.0.3"
	})
}

// frozen is a gRPC server that accepts calls and never answers.
func frozen(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	waittest.Must(t, err)
	server, ended := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		<-s.Context().Done()
		return s.Context().Err()
	})), make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
}

// TestAFrozenBackend: clients leave a backend that accepts calls and does not answer, if the server configures them to
// detect this; without that, every call to it fails.
func TestAFrozenBackend(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"with outlier detection": 500 * time.Millisecond, "without": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(p *xdsserver.Params) { p.Outliers = interval })
			port, _, _ := backend(t, "127.0.0.6:0")
			frozen(t, "127.0.0.7:"+port)
			w.Play(t, fmt.Sprintf("service own shop/cart 127.0.0.6,ports=http:%[1]s 127.0.0.7,ports=http:%[1]s", port))
			c := w.dial("xds:///shop/cart:http")
			failed := func(calls int) (n int) { // returns how many of some calls fail
				var all sync.WaitGroup
				var failures atomic.Int64
				for range calls {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // calls to both backends end in each interval
						defer cancel()
						if _, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
							failures.Add(1)
						}
					})
				}
				all.Wait()
				return int(failures.Load())
			}
			waittest.Until(t, "calls to go to both", func() bool { return failed(20) == 10 })
			if interval > 0 {
				waittest.Until(t, "the frozen one to be left", func() bool { return failed(20) == 0 })
			} else if n := failed(20); n < 10 {
				t.Errorf("%d of 20 calls failed", n)
			}
			if n := w.rejected(); n != 0 {
				t.Errorf("%d answers were rejected: %s", n, w.log)
			}
		})
	}
}

// TestAPodWithTwoAddressesHasOneShare: grpc-go takes both addresses for one endpoint, and uses the second where the first
// one fails.
func TestAPodWithTwoAddressesHasOneShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	six, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip(err) // a machine without IPv6
	}
	port, _, stop := serve(t, six)
	_, _, _ = backend(t, "127.0.0.4:"+port)
	_, _, stopFour := backend(t, "127.0.0.5:"+port)
	w.Play(t, fmt.Sprintf("address own 127.0.0.5 shop/cart-0\naddress own ::1 shop/cart-0\nservice own shop/cart 127.0.0.5,ports=http:%[1]s ::1,ports=http:%[1]s 127.0.0.4,ports=http:%[1]s", port))
	c := w.dial("xds:///shop/cart:http")
	// A client takes the first address that answers: on a busy machine this may be the second one.
	used, other := "127.0.0.5", "::1"
	waittest.Until(t, "both pods to answer", func() bool {
		seen := make(map[string]bool)
		for range 40 {
			seen[c.must()] = true
		}
		if seen["::1"] {
			used, other = "::1", "127.0.0.5"
		}
		return len(seen) == 2 && seen["127.0.0.4"]
	})
	shares := make(map[string]int)
	for range 100 {
		shares[c.must()]++
	}
	if shares["127.0.0.4"] != 50 {
		t.Errorf("of 100 calls, %d went to the pod with one address: %v", shares["127.0.0.4"], shares)
	}
	stops := map[string]func(){"127.0.0.5": stopFour, "::1": stop}
	stops[used]()
	waittest.Until(t, "the second address to answer", func() bool { ip, err := c.call(); return err == nil && ip == other })
	stops[other]()
	waittest.Until(t, "the other pod to answer alone", func() bool {
		for range 4 {
			if ip, err := c.call(); err != nil || ip != "127.0.0.4" {
				return false
			}
		}
		return true
	})
}

// TestServiceThatIsNotThere: calls to unknown names fail at once, and succeed when the service appears. Calls to a
// service that is removed fail at once, and succeed when it is added again, with clients that ignore the deletion of
// resources and with others (E 3, 13, 14, 15).
func TestServiceThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port, _, _ := backend(t, "127.0.0.2:0")
	c := w.dial("xds:///shop/cart:http")
	c.fails("no targets to pick from")
	if !strings.Contains(w.log.String(), `name=shop/cart:http reason="no cluster has the service"`) {
		t.Errorf("the log says %s", w.log)
	}
	present := fmt.Sprintf("service east shop/cart 127.0.0.2,ports=http:%s", port)
	for range 2 {
		w.Play(t, present)
		waittest.Until(t, "calls to succeed", func() bool { _, err := c.call(); return err == nil })
		c.until("it to answer", "127.0.0.2")
		w.Play(t, "no-service east shop/cart")
		c.fails("no targets to pick from")
	}
	if w.log.Count("no longer has backends") != 2 || w.log.Count("follow has backends") != 2 {
		t.Errorf("the log says %s", w.log)
	}
	w.dial("xds:///not-a-name").fails("no matched route was found")
	w.dial("xds:///shop/Cart:http").fails("no matched route was found")
}

// TestRestart: the restart of a server causes no failed call. Before it has read everything it accepts no stream. A
// service that was removed meanwhile is removed from the clients (E 16, 17, 18).
func TestRestart(t *testing.T) {
	t.Parallel()
	impatient := func(p *xdsserver.Params) { p.Wait = time.Millisecond }
	w := newWorld(t)
	port, _, _ := backend(t, "127.0.0.2:0")
	other, _, _ := backend(t, "127.0.0.3:0")
	w.Play(t, fmt.Sprintf("service own shop/cart 127.0.0.2,ports=http:%s", port))
	c := w.dial("xds:///shop/cart:http")
	c.until("it to answer", "127.0.0.2")
	w.stop()
	for range 20 {
		c.must()
	}
	w.Play(t, "no-service own shop/cart\nnot-ready east is being listed")
	w.start(impatient)
	isRefused := func() { // a stream of the test: gRPC waits longer after each refused one
		t.Helper()
		if _, err := w.sotw().to.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("a stream ended with %v", err)
		}
		c.must()
	}
	isRefused()
	w.Play(t, "cluster east unread\nready") // the sync timeout has passed
	isRefused()
	if sent, _ := w.server.Totals(); sent > 0 {
		t.Error("something was sent while not everything was known")
	}
	w.Play(t, fmt.Sprintf("service east shop/cart 127.0.0.3,ports=http:%s\ncluster east", other))
	c.until("what is there now to answer, without one failed call", "127.0.0.3")
	w.stop()
	w.Play(t, "no-service east shop/cart")
	w.start()
	c.fails("no targets to pick from")
}

// TestAProgramThatStartsWithItsAgent: a stream that is opened a little too early waits, and no call fails.
func TestAProgramThatStartsWithItsAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(p *xdsserver.Params) { p.Wait = time.Hour })
	port, _, _ := backend(t, "127.0.0.2:0")
	w.Play(t, fmt.Sprintf("service own shop/cart 127.0.0.2,ports=http:%s\nnot-ready east is being listed", port))
	c, called := w.dial("xds:///shop/cart:http"), make(chan error, 1)
	go func() {
		_, err := c.call()
		called <- err
	}()
	waittest.Until(t, "its stream to wait", func() bool { return len(w.server.Clients()) > 0 })
	w.Play(t, "ready")
	if err := <-called; err != nil {
		t.Error(err)
	}
}

// rejected returns how many responses clients rejected.
func (w *world) rejected() (n uint64) {
	for _, c := range w.server.Clients() {
		for _, f := range c.Follows {
			n += f.Rejected
		}
	}
	return n
}

// TestNothingIsSaidOfAClusterThatWasNotRead: an agent that starts while a cluster is unreachable sends nothing about a
// service without known backends, since that cluster may have some. A client that already has backends continues to use
// them.
func TestNothingIsSaidOfAClusterThatWasNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "cluster east unread\ncluster west synced\nservice west shop/b 10.0.0.2")
	s := w.sotw()
	s.ask(resource.EndpointType, nil, "", "shop/a:http", "shop/b:http")
	first := s.next()
	want(t, texts(t, first), "shop/b:http p0 west/*1 10.0.0.2:8080")
	s.ask(resource.EndpointType, first, "", "shop/a:http", "shop/b:http")
	// The known backends are sent, and their removal too.
	w.Play(t, "service west shop/a 10.0.0.3")
	second := s.next()
	want(t, texts(t, second), "shop/a:http p0 west/*1 10.0.0.3:8080")
	s.ask(resource.EndpointType, second, "", "shop/a:http", "shop/b:http")
	w.Play(t, "no-service west shop/a")
	third := s.next()
	want(t, texts(t, third), "shop/a:http")
	s.ask(resource.EndpointType, third, "", "shop/b:http", "shop/c:http")
	// Now the cluster was read: it has no backends of c.
	w.Play(t, "cluster east synced")
	want(t, texts(t, s.next()), "shop/c:http")
}

// TestAnIncrementalClientKeepsWhatWasNotRead: the same for a client that reports what it has from another agent, or from this
// one before it started again.
func TestAnIncrementalClientKeepsWhatWasNotRead(t *testing.T) {
	t.Parallel()
	for url, name := range map[string]string{resource.EndpointType: "shop/a:http", resource.ClusterType: "shop/a:8080"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Play(t, "cluster east unread\ncluster west synced\nservice west shop/b 10.0.0.2")
			d, follows := w.delta(), []string{name, "shop/b:http"}
			if url == resource.ClusterType {
				follows = []string{"*"}
			}
			d.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: follows, InitialResourceVersions: map[string]string{name: "1"}})
			first := d.next()
			if removed := first.GetRemovedResources(); len(removed) > 0 || len(first.GetResources()) != 1 {
				t.Errorf("the client loses %q", removed)
			}
			d.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: url, ResponseNonce: first.GetNonce()})
			if url == resource.ClusterType { // the removal that the agent sees is sent
				w.Play(t, "no-service west shop/b")
				removal := d.next()
				want(t, removal.GetRemovedResources(), "shop/b:8080")
				d.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: url, ResponseNonce: removal.GetNonce()})
			}
			w.Play(t, "cluster east synced")
			second := d.next()
			if len(second.GetRemovedResources())+len(second.GetResources()) != 1 {
				t.Errorf("now the cluster was read, and the agent sends %v", second)
			}
		})
	}
}

// TestAServiceTooLargeForAMessage: a cluster that publishes very many backends takes no room from other clusters.
func TestAServiceTooLargeForAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var many strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&many, " 10.1.%d.%d", i/250, i%250)
	}
	w.Play(t, "service a shop/a"+many.String()+"\nservice b shop/a 10.2.0.1 10.2.0.2,state=terminating")
	s := w.sotw()
	s.ask(resource.EndpointType, nil, "", "shop/a:http")
	text := texts(t, s.next())[0]
	if n := strings.Count(text, "10.1."); n < 20_000 || n >= 30_000 {
		t.Errorf("%d backends of the large cluster", n)
	}
	if !strings.HasSuffix(text, "p0 b/*1 10.2.0.1:8080 -10.2.0.2:8080") {
		t.Errorf("the small one has not all of its own: %s", text[len(text)-100:])
	}
}

// TestClientsThatAreGone: clients that have gone stay listed until their program returns.
func TestClientsThatAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := func() (all []string) {
		for _, c := range w.server.Departed() {
			all = append(all, fmt.Sprintf("%s %v %t", c.Node, c.Follows[0].Names, !c.Gone.Before(c.Since)))
		}
		return all
	}
	w.Play(t, "service own shop/cart 127.0.0.2")
	c := w.dial("xds:///shop/cart:http")
	c.conn.Connect()
	waittest.Until(t, "it to be listed", func() bool { all := w.server.Clients(); return len(all) == 1 && len(all[0].Follows) == 3 })
	if all := gone(); len(all) != 0 {
		t.Errorf("it is open and gone: %q", all)
	}
	_ = c.conn.Close()
	waittest.Until(t, "it to be gone", func() bool { return slices.Equal(gone(), []string{"test [shop/cart:http] true"}) })
	if all := w.server.Clients(); len(all) != 0 {
		t.Errorf("%v are open", all)
	}
	second := w.dial("xds:///shop/cart:http")
	second.conn.Connect()
	waittest.Until(t, "it to be back", func() bool { return len(w.server.Clients()) == 1 && len(gone()) == 0 })
}
