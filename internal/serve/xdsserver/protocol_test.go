package xdsserver_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/sync/errgroup"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// sotw is a stream with the state of the world.
type sotw struct {
	t  *testing.T
	to discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
}

func (w *world) sotw() sotw {
	w.t.Helper()
	to, err := w.streams().StreamAggregatedResources(waittest.Context(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	return sotw{w.t, to}
}

// ask follows names; after is the answer that this request acknowledges, nil for none. A rejected that is not empty
// rejects that answer for this reason.
func (s sotw) ask(url string, after *discovery.DiscoveryResponse, rejected string, names ...string) {
	s.t.Helper()
	r := &discovery.DiscoveryRequest{
		TypeUrl: url, ResourceNames: names, Node: &corev3.Node{Id: "me", UserAgentName: "test"}, VersionInfo: after.GetVersionInfo(), ResponseNonce: after.GetNonce(),
	}
	if rejected != "" {
		r.ErrorDetail, r.VersionInfo = &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: rejected}, ""
	}
	if err := s.to.Send(r); err != nil {
		s.t.Fatal(err)
	}
}

func (s sotw) next() *discovery.DiscoveryResponse {
	s.t.Helper()
	r, err := s.to.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// texts are the resources of an answer: clusters by name, assignments as "NAME p0 REGION/ZONE*WEIGHT ADDRESS:PORT...,
// p1 ...", with "-" before a backend that drains.
func texts(t *testing.T, r *discovery.DiscoveryResponse) (all []string) {
	t.Helper()
	for _, one := range r.GetResources() {
		m, err := one.UnmarshalNew()
		waittest.Must(t, err)
		all = append(all, text(m))
	}
	slices.Sort(all)
	return all
}

func text(m proto.Message) string {
	switch m := m.(type) {
	case *clusterv3.Cluster:
		return m.GetName()
	case *endpointv3.ClusterLoadAssignment:
		var b strings.Builder
		b.WriteString(m.GetClusterName())
		for _, l := range m.GetEndpoints() {
			fmt.Fprintf(&b, " p%d %s/%s*%d", l.GetPriority(), l.GetLocality().GetRegion(), l.GetLocality().GetZone(), l.GetLoadBalancingWeight().GetValue())
			for _, e := range l.GetLbEndpoints() {
				a := e.GetEndpoint().GetAddress().GetSocketAddress()
				b.WriteString(" ")
				if e.GetHealthStatus() == corev3.HealthStatus_DRAINING {
					b.WriteString("-")
				}
				fmt.Fprintf(&b, "%s:%d", a.GetAddress(), a.GetPortValue())
				for _, more := range e.GetEndpoint().GetAdditionalAddresses() {
					fmt.Fprintf(&b, "+%s:%d", more.GetAddress().GetSocketAddress().GetAddress(), more.GetAddress().GetSocketAddress().GetPortValue())
				}
			}
		}
		return b.String()
	}
	return m.(interface{ GetName() string }).GetName()
}

func want(t *testing.T, got []string, wanted ...string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("got  %q\nwant %q", got, wanted)
	}
}

// TestAssignments: the assignments that the choice of backends results in (xds.md E 7 to 13).
func TestAssignments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, `
		service own shop/cart affinity=local 10.0.0.1,zone=a 10.0.0.2,zone=a 10.0.0.3 10.0.0.4,zone=b,state=terminating
		service east shop/cart 10.0.0.1 10.1.0.1 10.1.0.2,zone=a fd00::1
		service west shop/cart 10.2.0.1,ports=none 10.2.0.2,ports=other:1
		service north shop/cart 10.3.0.1
		use north demoted
		use west demoted
		service east shop/two 10.1.0.7,ports=a:1+b:2 10.1.0.8,ports=a:1+u:1/UDP
		service east shop/udp 10.1.0.9,ports=dns:53/UDP
	`)
	s := w.sotw()
	s.ask(resource.EndpointType, nil, "", "shop/cart:http", "shop/two", "shop/udp:dns", "shop/none:http", "cart.shop.svc.clusterset.local.:http", "!")
	want(t, texts(t, s.next()),
		"!",
		"cart.shop.svc.clusterset.local.:http p0 own/*1 10.0.0.3:8080 p0 own/a*2 10.0.0.1:8080 10.0.0.2:8080 p0 own/b*1 -10.0.0.4:8080 p1 east/*2 10.1.0.1:8080 fd00::1:8080 p1 east/a*1 10.1.0.2:8080 p2 north/*1 10.3.0.1:8080",
		"shop/cart:http p0 own/*1 10.0.0.3:8080 p0 own/a*2 10.0.0.1:8080 10.0.0.2:8080 p0 own/b*1 -10.0.0.4:8080 p1 east/*2 10.1.0.1:8080 fd00::1:8080 p1 east/a*1 10.1.0.2:8080 p2 north/*1 10.3.0.1:8080",
		"shop/none:http",
		"shop/two p0 east/*1 10.1.0.8:1",
		"shop/udp:dns",
	)
}

// TestImportedServices: a client that follows the name of a service that is exported through the MCS API has the
// backends of the derived service, and each change of them, by a change of the service or of the export.
func TestImportedServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	derived := wire.DerivedServiceName("shop", "cart")
	const cart = "cart.shop.svc.clusterset.local:http"
	s := w.sotw()
	s.ask(resource.EndpointType, nil, "", cart)
	last := s.next()
	want(t, texts(t, last), cart)
	for _, step := range [][2]string{
		{"export east shop/cart\nservice east shop/" + derived + " 10.1.0.1", cart + " p0 east/*1 10.1.0.1:8080"},
		{"service east shop/" + derived + " 10.1.0.2", cart + " p0 east/*1 10.1.0.2:8080"},
		{"service own shop/" + derived + " 10.0.0.1", cart + " p0 east/*1 10.1.0.2:8080 p0 own/*1 10.0.0.1:8080"},
		{"no-export east shop/cart", cart},
		{"export east shop/cart", cart + " p0 east/*1 10.1.0.2:8080 p0 own/*1 10.0.0.1:8080"},
		{"no-service east shop/" + derived, cart + " p0 own/*1 10.0.0.1:8080"},
	} {
		s.ask(resource.EndpointType, last, "", cart)
		w.Play(t, step[0])
		for { // two lines may be two changes
			last = s.next()
			if got := texts(t, last); got[0] == step[1] {
				break
			} else if strings.Count(step[0], "\n") == 0 {
				t.Fatalf("after %q: %q, want %q", step[0], got, step[1])
			}
			s.ask(resource.EndpointType, last, "", cart)
		}
	}
}

// TestDualStackPods: a pod with two addresses is one endpoint as long as that is certain, also when its addresses
// become known, or become those of another pod, after the service.
func TestDualStackPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "address east 10.1.0.1 shop/cart-0\naddress east fd00::1 shop/cart-0\nservice east shop/cart 10.1.0.1 fd00::1 10.1.0.2 fd00::2\nservice own shop/cart 10.0.0.1")
	s := w.sotw()
	const cart, own = "shop/cart:http", " p0 own/*1 10.0.0.1:8080"
	s.ask(resource.EndpointType, nil, "", cart)
	last := s.next()
	want(t, texts(t, last), cart+" p0 east/*3 10.1.0.1:8080+fd00::1:8080 10.1.0.2:8080 fd00::2:8080"+own)
	for _, step := range [][2]string{
		{"address east 10.1.0.2 shop/cart-1\naddress east fd00::2 shop/cart-1", "2 10.1.0.1:8080+fd00::1:8080 10.1.0.2:8080+fd00::2:8080"},
		{"no-address east fd00::1", "3 10.1.0.1:8080 10.1.0.2:8080+fd00::2:8080 fd00::1:8080"},
		{"address east fd00::1 shop/cart-0", "2 10.1.0.1:8080+fd00::1:8080 10.1.0.2:8080+fd00::2:8080"},
		{"service east shop/cart 10.1.0.1 fd00::1", "1 10.1.0.1:8080+fd00::1:8080"},
		{"service east shop/cart 10.1.0.1", "1 10.1.0.1:8080"},
	} {
		s.ask(resource.EndpointType, last, "", cart)
		w.Play(t, step[0])
		last = s.next()
		want(t, texts(t, last), cart+" p0 east/*"+step[1]+own)
	}
}

// TestOnlyWhatChangedIsSent: changes alone are sent, and only to the clients that follow the resource (E 19, 20, 22).
func TestOnlyWhatChangedIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "service east shop/a 10.0.0.1\nservice east shop/b 10.0.0.2")
	both, onlyB := w.sotw(), w.sotw()
	both.ask(resource.EndpointType, nil, "", "shop/a:http", "shop/b:http")
	first := both.next()
	want(t, texts(t, first), "shop/a:http p0 east/*1 10.0.0.1:8080", "shop/b:http p0 east/*1 10.0.0.2:8080")
	both.ask(resource.EndpointType, first, "", "shop/a:http", "shop/b:http")
	onlyB.ask(resource.EndpointType, nil, "", "shop/b:http")
	ofB := onlyB.next()
	onlyB.ask(resource.EndpointType, ofB, "", "shop/b:http")
	w.confirmed(2)

	w.Play(t, "service east shop/a 10.0.0.9")
	second := both.next()
	want(t, texts(t, second), "shop/a:http p0 east/*1 10.0.0.9:8080")
	both.ask(resource.EndpointType, second, "", "shop/a:http", "shop/b:http")
	w.Play(t, "service east shop/a 10.0.0.9,host=x\nservice east shop/b 10.0.0.2,node=n") // this changes nothing that clients are sent
	w.Play(t, "service east shop/b 10.0.0.3")
	third := both.next()
	want(t, texts(t, third), "shop/b:http p0 east/*1 10.0.0.3:8080")
	want(t, texts(t, onlyB.next()), "shop/b:http p0 east/*1 10.0.0.3:8080")
	if sent, _ := w.server.Totals(); sent != 5 {
		t.Errorf("%d answers were sent", sent)
	}

	both.ask(resource.EndpointType, third, "", "shop/b:http")
	both.ask(resource.EndpointType, third, "", "shop/b:http", "shop/a:http")
	want(t, texts(t, both.next()), "shop/a:http p0 east/*1 10.0.0.9:8080")
}

// confirmed waits until n clients have acknowledged everything that they were sent.
func (w *world) confirmed(n int) {
	w.t.Helper()
	waittest.Until(w.t, "everything to be confirmed", func() bool {
		all := w.server.Clients()
		for _, c := range all {
			for _, f := range c.Follows {
				if f.Sent == "" || f.Sent != f.Confirmed {
					return false
				}
			}
		}
		return len(all) == n
	})
}

// TestRejection: a rejection by a client is shown, counted and logged, without control characters of a terminal. Other
// clients are sent changes, and the next valid resource ends the rejection (E 21).
func TestRejection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "service east shop/a 10.0.0.1\nservice east shop/b 10.0.0.2")
	s, other := w.sotw(), w.sotw()
	other.ask(resource.EndpointType, nil, "", "shop/a:http")
	other.ask(resource.EndpointType, other.next(), "", "shop/a:http")
	s.ask(resource.EndpointType, nil, "", "shop/a:http", "shop/b:http")
	s.ask(resource.EndpointType, s.next(), "shop/a:http is bad\x1b[2J\n"+strings.Repeat("x", 5000), "shop/a:http", "shop/b:http")
	waittest.Until(t, "the rejection to be known", func() bool { return w.rejected() == 1 })
	i := slices.IndexFunc(w.server.Clients(), func(c xdsserver.Client) bool { return c.Follows[0].Rejected > 0 })
	f := w.server.Clients()[i].Follows[0]
	if !strings.HasPrefix(f.Reason, `shop/a:http is bad\u001b[2J\nxxx`) || len(f.Reason) > 1000 || f.Confirmed != "" {
		t.Errorf("shown: %+v", f)
	}
	if w.log.Count("shop/a:http is bad") != 1 || w.log.Count("\x1b") != 0 {
		t.Errorf("logged: %s", w.log)
	}
	w.Play(t, "service east shop/a 10.0.0.9")
	want(t, texts(t, other.next()), "shop/a:http p0 east/*1 10.0.0.9:8080")
	healed := s.next()
	want(t, texts(t, healed), "shop/a:http p0 east/*1 10.0.0.9:8080")
	s.ask(resource.EndpointType, healed, "", "shop/a:http", "shop/b:http")
	waittest.Until(t, "the good one to be confirmed", func() bool {
		f := w.server.Clients()[i].Follows[0]
		return f.Confirmed == f.Sent && f.Confirmed != ""
	})
}

// TestBounds: there are limits of the names in a request, of the followed names, of streams and of requests (E 23).
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(p *xdsserver.Params) { p.Names, p.Streams.All, p.Streams.Peer = 2, 3, 1 })
	fails := func(s sotw, code codes.Code) {
		t.Helper()
		for {
			if _, err := s.to.Recv(); err != nil {
				if status.Code(err) != code {
					t.Errorf("%v, not %s", err, code)
				}
				return
			}
		}
	}
	s := w.sotw()
	s.ask(resource.EndpointType, nil, "", "a/a:1", "a/b:1", "a/c:1")
	fails(s, codes.ResourceExhausted)
	s = w.sotw()
	s.ask(resource.EndpointType, nil, "", "a/a:1"+strings.Repeat("x", 1<<20))
	fails(s, codes.ResourceExhausted)
	for range 3 {
		open := w.sotw()
		open.ask(resource.EndpointType, nil, "", "a/a:1")
		open.next()
	}
	fails(w.sotw(), codes.ResourceExhausted)
	if _, refused := w.server.Totals(); refused != 3 {
		t.Errorf("%d refused", refused)
	}
	delta, err := w.streams().DeltaAggregatedResources(waittest.Context(t))
	if err == nil {
		_, err = delta.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("an incremental stream: %v", err)
	}
}

// TestThousandClients: all are served, and no state of them remains (E 23).
func TestThousandClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "service east shop/a 10.0.0.1\nservice east shop/b 10.0.0.2")
	ctx, cancel := context.WithCancel(waittest.Context(t))
	var group errgroup.Group
	for range 125 {
		client := w.streams()
		for range 8 {
			group.Go(func() error {
				to, err := client.StreamAggregatedResources(ctx)
				if err == nil {
					err = to.Send(&discovery.DiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNames: []string{"shop/a:http", "shop/b:http"}})
				}
				if err == nil {
					_, err = to.Recv()
				}
				return err
			})
		}
	}
	waittest.Must(t, group.Wait())
	if n := len(w.server.Clients()); n != 1000 {
		t.Errorf("%d clients", n)
	}
	cancel()
	waittest.Until(t, "all to be gone", func() bool { return len(w.server.Clients()) == 0 })
	// A client that has gone is removed from the list before the names of its stream are.
	waittest.Until(t, "what nobody follows to be gone", func() bool {
		return strings.Contains(w.scrape(), "mesh_agent_xds_names{type=\"endpoints\"} 0")
	}, w.scrape)
	if text := w.scrape(); !strings.Contains(text, "mesh_agent_xds_responses_total{type=\"endpoints\"} 1000") {
		t.Errorf("not one answer for each client:\n%s", text)
	}
}

// scrape returns the metrics as Prometheus reads them.
func (w *world) scrape() string {
	w.t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(w.metrics)
	families, err := reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			w.t.Fatal(err)
		}
	}
	return text.String()
}
