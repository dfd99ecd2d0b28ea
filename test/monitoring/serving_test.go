package monitoring

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/miekg/dns"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// servingAlerts fire while an agent has read no cluster.
func servingAlerts() []string {
	return []string{"MeshDNSFailing", "MeshXDSNotReady", "MeshDiscoveryFailing", "MeshReadyWithoutClusters", "MeshClusterUnreachable east"}
}

// refusingAlerts fire while clients exceed limits, or reject responses.
func refusingAlerts() []string {
	return []string{"MeshDNSRefusing queries", "MeshXDSRefusing streams", "MeshAPIRefusing watches", "MeshXDSRejected clusters"}
}

// server is an agent with clients.
type server struct {
	t             *testing.T
	api, dns, xds string
}

func newServer(t *testing.T) *server {
	t.Helper()
	return &server{t, programtest.Reserve(t), programtest.Reserve(t), programtest.Reserve(t)}
}

func (s *server) flags(more ...string) []string {
	return append([]string{"--listen", s.api, "--dns", s.dns, "--xds", s.xds}, more...)
}

// again calls do repeatedly until stop is called or the test ends.
func again(t *testing.T, every time.Duration, do func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for waiting.Sleep(ctx, every) == nil {
			do(ctx)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

// asks sends DNS questions and requests for targets, and ignores the answers.
func (s *server) asks() (stop func()) {
	s.t.Helper()
	question := new(dns.Msg).SetQuestion("clash.shop.svc.clusterset.local.", dns.TypeA)
	client := &dns.Client{Timeout: time.Second}
	return again(s.t, 100*time.Millisecond, func(ctx context.Context) {
		_, _, _ = client.ExchangeContext(ctx, question, s.dns)
		for _, list := range []string{"nodes?port=9100", "services", "endpoints"} {
			s.fetch(ctx, "/v1/discovery/prometheus/"+list)
		}
	})
}

// fetch requests a path until an answer is complete, or ctx ends.
func (s *server) fetch(ctx context.Context, path string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.api+path, nil)
	if err != nil {
		return
	}
	if resp, err := http.DefaultClient.Do(r); err == nil {
		_ = resp.Body.Close()
	}
}

// follows opens a stream, asks for all clusters, and acknowledges each response, or rejects it if there is a reason. It
// returns when the stream ends.
func (s *server) follows(ctx context.Context, rejection string) {
	conn, err := grpc.NewClient(s.xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer conn.Close()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return
	}
	ask := &discovery.DiscoveryRequest{TypeUrl: resource.ClusterType, Node: &corev3.Node{Id: "somebody"}}
	for {
		if stream.Send(ask) != nil {
			return
		}
		answer, err := stream.Recv()
		if err != nil {
			return
		}
		ask = &discovery.DiscoveryRequest{TypeUrl: answer.GetTypeUrl(), ResponseNonce: answer.GetNonce(), VersionInfo: answer.GetVersionInfo()}
		if rejection != "" {
			ask.VersionInfo, ask.ErrorDetail = "", &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: rejection}
		}
	}
}

// TestServing: the agent's only cluster is unreachable at its start, and available later.
func TestServing(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	m, s := meshtest.Run(t, small("east", 1)), newServer(t)
	east := m.Clusters()[0]
	must(t, east.Kill())
	agenttest.StartAgent(t, m.Dir(), s.flags("--clustermesh-sync-timeout", "2s")...)
	p := startPrometheus(t, target{"mesh-agent", s.api})
	s.asks()
	for range 3 {
		again(t, time.Second, func(ctx context.Context) { s.follows(ctx, "") })
	}
	p.fire(servingAlerts()...)
	must(t, east.Start(t.Context()))
	p.resolve()
}

// TestRefusing: clients exceed the limits of flags, and reject what they get.
func TestRefusing(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	m, s := meshtest.Run(t, small("east", 1)), newServer(t)
	east := m.Clusters()[0]
	agenttest.StartAgent(t, m.Dir(), s.flags("--dns-max-queries", "1", "--xds-max-streams", "1", "--listen-max-watches", "1")...)
	p := startPrometheus(t, target{"mesh-agent", s.api})
	p.scraped(1)
	var stops []func()
	bothers := func(every time.Duration, do func(context.Context)) { stops = append(stops, again(t, every, do)) }
	for range 2 {
		bothers(100*time.Millisecond, func(ctx context.Context) { s.follows(ctx, "it is not to my taste") })
		bothers(100*time.Millisecond, func(ctx context.Context) { s.watches(ctx) })
	}
	for range 16 {
		client, question := &dns.Client{Timeout: 50 * time.Millisecond}, new(dns.Msg).SetQuestion("clash.shop.svc.clusterset.local.", dns.TypeA)
		bothers(time.Millisecond, func(ctx context.Context) { _, _, _ = client.ExchangeContext(ctx, question, s.dns) })
	}
	number := uint16(0)
	bothers(300*time.Millisecond, func(ctx context.Context) { // so that there are responses
		number++
		c := east.Cluster()
		service := wire.Service{
			Cluster: c.Name, ClusterID: c.ID, Namespace: "shop", Name: "moving", Shared: true,
			Frontends: map[string]wire.Ports{"198.18.0.1": {"http": {Protocol: "TCP", Port: 80 + number%50}}},
			Backends:  map[string]wire.Ports{"10.1.7.7": {"http": {Protocol: "TCP", Port: 80 + number%50}}},
		}
		_ = east.Put(ctx, service.Key(), service.Encode())
	})
	p.fire(refusingAlerts()...)
	for _, stop := range stops {
		stop()
	}
	p.resolve()
}

// watches follows the nodes until ctx ends, or the watch is refused because there are too many.
func (s *server) watches(ctx context.Context) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.api+"/v1/watch?resource=nodes", nil)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		<-ctx.Done()
	}
}
