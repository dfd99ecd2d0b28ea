package xdsserver_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// hostileTexts are texts that a cluster may publish in place of a name, if they are not checked.
var hostileTexts = []string{
	"", "a\xffb", "\xff\xfe", "\xed\xa0\x80", "a\x00b", "\x1b[2J", "a\nb", "\u202egnp.exe", "a{}; b", "../../x", "é", strings.Repeat("x", 1<<20), strings.Repeat("\xff", 1<<20),
	strings.Repeat("a\xff", 200), "A", "a b", "*", "-", ".", "shop/x", "x:80", strings.Repeat("é", 300),
}

// hostileService has hostile texts in all of its fields.
func hostileService(r *rand.Rand, name string) *services.Service {
	pick := func() string { return hostileTexts[r.IntN(len(hostileTexts))] }
	s := &services.Service{
		Cluster: "bad", ClusterID: 9, Source: wire.SourceClusterMesh, Shared: true, IncludeExternal: true, Namespace: "shop", Name: name,
		Ports: []services.Port{{Name: pick(), Protocol: pick(), Port: uint16(r.UintN(1 << 16))}, {Name: "http", Protocol: "TCP", Port: 80}},
	}
	for i := range 1 + r.IntN(8) {
		s.Backends = append(s.Backends, services.Backend{
			IP: netip.AddrFrom4([4]byte{10, 9, 0, byte(i)}), Zone: pick(), Node: pick(), Hostname: pick(),
			Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}, {Name: pick(), Protocol: pick(), Port: uint16(r.UintN(1 << 16))}},
		})
	}
	if r.IntN(4) == 0 {
		s.Backends[0].IP = netip.MustParseAddr("fe80::1%" + strings.Repeat("\xff", 300))
	}
	return s
}

// TestHostileNames: with any contents of a cluster, clients that follow it, and those that follow all clusters, are
// still served on their open streams. A text that cannot be encoded is cleaned or left out.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, func(p *xdsserver.Params) {
		p.Boundary = boundary.New(slog.New(slog.NewTextHandler(&log, nil))).Part("xds")
	})
	w.Play(t, "service own shop/good 10.0.0.1\nservice own shop/both 10.0.0.2")
	followed := []string{"shop/good:http", "shop/both:http", "shop/bad:http", "shop/bad:80"}
	whole, everything, inc := w.sotw(), w.delta(), w.delta()
	whole.ask(resource.EndpointType, nil, "", followed...)
	everything.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType})
	inc.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: followed})
	r := rand.New(rand.NewPCG(1, 2))
	var bad []*services.Service
	for round := range 100 {
		for _, name := range []string{"bad", "both", hostileTexts[r.IntN(len(hostileTexts))]} {
			bad = append(bad, hostileService(r, name))
			if r.IntN(3) == 0 {
				bad[len(bad)-1].Namespace = hostileTexts[r.IntN(len(hostileTexts))]
			}
			w.Apply(bad[len(bad)-1])
		}
		wanted := fmt.Sprintf("10.0.1.%d:8080", round)
		w.Play(t, fmt.Sprintf("service own shop/good 10.0.1.%d\nservice own shop/new%d 10.0.0.1", round, round))
		for seen := false; !seen; { // the good service is sent, on the same stream
			a := whole.next()
			for _, one := range texts(t, a) {
				seen = seen || strings.HasPrefix(one, "shop/good") && strings.Contains(one, wanted)
			}
			whole.ask(resource.EndpointType, a, "", followed...)
		}
		for seen := false; !seen; {
			a := inc.next()
			for _, one := range a.GetResources() {
				m, err := one.GetResource().UnmarshalNew()
				waittest.Must(t, err)
				seen = seen || strings.Contains(text(m), wanted)
			}
			inc.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: a.GetNonce()})
		}
		for seen := false; !seen; {
			a := everything.next()
			seen = slices.Contains(names(a), fmt.Sprintf("shop/new%d:8080", round))
			everything.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, ResponseNonce: a.GetNonce()})
		}
	}
	if log.Len() > 0 {
		t.Errorf("something failed: %.2000s", &log)
	}
}

// TestNamesOfClients: hostile names in a request end at most the stream of that request.
func TestNamesOfClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "service own shop/good 10.0.0.1")
	friend := w.sotw()
	friend.ask(resource.EndpointType, nil, "", "shop/good:http")
	last := friend.next()
	for _, name := range hostileTexts {
		name = strings.ToValidUTF8(name[:min(len(name), 300_000)], "\uFFFD")
		for _, url := range []string{resource.ListenerType, resource.RouteType, resource.ClusterType, resource.EndpointType} {
			s, d := w.sotw(), w.delta()
			s.ask(url, nil, "", name, "shop/good:80")
			d.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: []string{name, "shop/good:80"}, InitialResourceVersions: map[string]string{name: name}})
			_, err := s.to.Recv()
			_, err2 := d.to.Recv()
			for _, err := range []error{err, err2} {
				if long := len(name) > 512; long != (status.Code(err) == codes.InvalidArgument) || !long && err != nil {
					t.Errorf("%.20q of %s: %v", name, url, err)
				}
			}
		}
	}
	friend.ask(resource.EndpointType, last, "", "shop/good:http")
	w.Play(t, "service own shop/good 10.0.0.2")
	want(t, texts(t, friend.next()), "shop/good:http p0 own/*1 10.0.0.2:8080")
}

// TestNothingIsKeptOfUnknownTypes: requests of unknown types leave nothing in memory, and the nodes of clients leave
// far less than clients send. The test runs alone, as it measures the memory of the process.
func TestNothingIsKeptOfUnknownTypes(t *testing.T) {
	w := newWorld(t)
	w.Play(t, "service own shop/good 10.0.0.1")
	const size, requests = 900_000, 100
	s, d := w.sotw(), w.delta()
	s.ask(resource.EndpointType, nil, "", "shop/good:http")
	first := s.next()
	node := &corev3.Node{Id: strings.Repeat("i", 300), Cluster: strings.Repeat("c", size/2), Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
		"x": structpb.NewStringValue(strings.Repeat("m", size/2)),
	}}}
	before := heap()
	for i := range requests {
		long := fmt.Sprint(i, strings.Repeat("x", size))
		waittest.Must(t, s.to.Send(&discovery.DiscoveryRequest{TypeUrl: fmt.Sprint("unknown", i), ResourceNames: []string{long}}))
		waittest.Must(t, d.to.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: fmt.Sprint("unknown", i), ResourceNamesSubscribe: []string{long}}))
		waittest.Must(t, d.to.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, InitialResourceVersions: map[string]string{long: "x"}}))
		if i < 30 { // nodes of other streams
			other := w.sotw()
			waittest.Must(t, other.to.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: resource.EndpointType, ResourceNames: []string{"shop/good:http"}}))
			other.next()
		}
	}
	s.ask(resource.EndpointType, first, "", "shop/good:http", "shop/good:80") // all requests are received when this one is answered
	s.next()
	d.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{"shop/good:http"}})
	d.next()
	if kept := heap() - before; kept > size*requests/4 {
		t.Errorf("%d MiB are kept of %d", kept>>20, 3*size*requests>>20)
	}
}

// manyBackends returns this many addresses for a line of a test, from 10.N.0.0 on.
func manyBackends(n, many int) string {
	var b strings.Builder
	for i := range many {
		fmt.Fprintf(&b, " 10.%d.%d.%d", n+i/65536, i/256%256, i%256)
	}
	return b.String()
}

// TestManyLargeServices: a client gets several large assignments, in messages that are all below gRPC's limit.
func TestManyLargeServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var followed []string
	for i := range 4 {
		w.Play(t, fmt.Sprintf("service east shop/s%d%s", i, manyBackends(i, 60_000)))
		followed = append(followed, fmt.Sprintf("shop/s%d:http", i))
	}
	s, d := w.sotw(), w.delta()
	s.ask(resource.EndpointType, nil, "", followed...)
	d.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: followed})
	got := make(map[string]int)
	for len(got) < len(followed) {
		a := s.next()
		for _, one := range texts(t, a) {
			name, _, _ := strings.Cut(one, " ")
			got[name] = strings.Count(one, ":8080")
		}
		s.ask(resource.EndpointType, a, "", followed...)
	}
	incremental := make(map[string]bool)
	for len(incremental) < len(followed) {
		a := d.next()
		for _, name := range names(a) {
			incremental[name] = true
		}
		d.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: a.GetNonce()})
	}
	for name, n := range got {
		if n < 40_000 {
			t.Errorf("%s has %d backends", name, n)
		}
	}
	if text := w.scrape(); !strings.Contains(text, `mesh_agent_xds_left_out{type="endpoints"}`) || strings.Contains(text, `mesh_agent_xds_left_out{type="endpoints"} 0`) {
		t.Error("what is left out is not counted")
	}
	if w.log.Count("has more backends than an xDS message has room for") == 0 {
		t.Errorf("there is no warning: %s", w.log)
	}
}

// TestLongZones: backends whose zones have the greatest length also fit.
func TestLongZones(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := &services.Service{Cluster: "east", ClusterID: 2, Source: wire.SourceClusterMesh, Shared: true, Namespace: "shop", Name: "a"}
	for i := range 30_000 {
		s.Backends = append(s.Backends, services.Backend{
			IP: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Zone: fmt.Sprint(i, strings.Repeat("\xffz", 1000)),
			Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}},
		})
	}
	w.Apply(s)
	w.Play(t, "service small shop/a 10.7.0.1,zone=x")
	stream := w.sotw()
	stream.ask(resource.EndpointType, nil, "", "shop/a:http")
	if text := texts(t, stream.next())[0]; !strings.Contains(text, "small/x*1 10.7.0.1:8080") || strings.Count(text, ":8080") < 3000 {
		t.Errorf("%d backends", strings.Count(text, ":8080"))
	}
}

// TestClientsThatReportVeryManyClusters: while a cluster is unread, a client keeps the clusters that it reports. They count for
// the memory of its address.
func TestClientsThatReportVeryManyClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(p *xdsserver.Params) { p.Memory = xdsserver.MinMemory })
	w.Play(t, "cluster east unread\ncluster west synced\nservice west shop/a 10.0.0.1")
	known := make(map[string]string)
	for i := range 12_000 {
		known[fmt.Sprintf("shop/%s-%d:80", strings.Repeat("a", 50), i)] = "1"
	}
	streams := w.streams()
	refused := 0
	for range 20 {
		d, err := streams.DeltaAggregatedResources(waittest.Context(t))
		waittest.Must(t, err)
		waittest.Must(t, d.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, InitialResourceVersions: known}))
		switch _, err := d.Recv(); status.Code(err) {
		case codes.OK:
		case codes.ResourceExhausted:
			refused++
		default:
			t.Fatal(err)
		}
	}
	if refused < 10 || refused == 20 {
		t.Errorf("%d of 20 are refused", refused)
	}
}

// TestClientsThatConfirmNothing: clients that acknowledge nothing hold no more than their share of memory for answers;
// others are served.
func TestClientsThatConfirmNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(p *xdsserver.Params) { p.Wait = time.Millisecond })
	w.Play(t, "service east shop/a"+manyBackends(0, 60_000))
	var refused atomic.Int64
	for i := 0; refused.Load() == 0; i++ {
		if i == 100 {
			t.Fatal("nobody is refused")
		}
		s := w.sotw()
		s.ask(resource.EndpointType, nil, "", "shop/a:http")
		if _, err := s.to.Recv(); status.Code(err) == codes.ResourceExhausted {
			refused.Add(1)
		} else {
			waittest.Must(t, err)
		}
	}
	if text := w.scrape(); !strings.Contains(text, `mesh_agent_xds_refused_total{reason="unconfirmed"} 1`) {
		t.Error(text)
	}
}

// panicking is a log handler that panics once.
type panicking struct {
	slog.Handler
	at   string
	once *atomic.Bool
}

func (panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p panicking) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, p.at) && p.once.CompareAndSwap(false, true) {
		panic("in the follower")
	}
	return p.Handler.Handle(ctx, r)
}

// TestThePanicOfTheFollower: a panic of the follower ends nothing. It starts again, and clients get the response that
// it was about to send.
func TestThePanicOfTheFollower(t *testing.T) {
	t.Parallel()
	var once atomic.Bool
	failures := boundary.New(nil)
	w := newWorld(t, func(p *xdsserver.Params) {
		p.Boundary = failures.Part("xds")
		p.Log = slog.New(panicking{slog.DiscardHandler, "no longer has backends", &once})
	})
	w.Play(t, "service east shop/a 10.0.0.1\nservice east shop/b 10.0.0.2")
	s := w.sotw()
	s.ask(resource.EndpointType, nil, "", "shop/a:http", "shop/b:http")
	a := s.next()
	s.ask(resource.EndpointType, a, "", "shop/a:http", "shop/b:http")
	w.Play(t, "no-service east shop/a")
	want(t, texts(t, s.next()), "shop/a:http")
	if !once.Load() {
		t.Error("nothing panicked")
	}
}
