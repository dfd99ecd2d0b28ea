package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// pulses are the changes of the service pulse: when each began.
type pulses struct {
	mu    sync.Mutex
	begun map[uint32]time.Time // guarded by mu; by the port of its backend
}

// changePulse changes the service repeatedly, and renews the attacker's heartbeat.
func (w *world) changePulse(ctx context.Context) {
	for port := uint16(10_000); waiting.Sleep(ctx, 100*time.Millisecond) == nil; port++ {
		if port == 60_000 {
			port = 10_000
		}
		w.pulses.mu.Lock()
		w.pulses.begun[uint32(port)] = time.Now()
		w.pulses.mu.Unlock()
		for _, c := range []*cluster{w.friendly[0], w.friendly[1], w.evil} {
			if err := c.writePulse(port); err != nil && c != w.evil {
				w.agent.fails(fmt.Sprintf("writing to %s: %v", c.name, err))
			}
		}
	}
}

// saw notes that a friend has received a change.
func (w *world) saw(f *friend, port uint32) {
	w.pulses.mu.Lock()
	at, known := w.pulses.begun[port]
	w.pulses.mu.Unlock()
	if known {
		f.served(at, nil)
	}
}

// target is the name of the service's port in xDS.
const target = "ns/" + pulse + ":http"

// xdsClient is a client with a connection of its own.
func (w *world) xdsClient() (discovery.AggregatedDiscoveryServiceClient, *grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if w.secure != nil {
		secure = credentials.NewTLS(w.secure)
	}
	conn, err := grpc.NewClient("passthrough:"+w.agent.xds, grpc.WithTransportCredentials(secure))
	if err != nil {
		return nil, nil, err
	}
	return discovery.NewAggregatedDiscoveryServiceClient(conn), conn, nil
}

func friendlyNode() *corev3.Node { return &corev3.Node{Id: "friend", UserAgentName: "test"} }

// followsIncrementally is an xDS client, whose stream must never end.
func (w *world) followsIncrementally(ctx context.Context, f *friend) error {
	return w.followsName(ctx, f, target)
}

func (w *world) followsName(ctx context.Context, f *friend, name string) error {
	c, conn, err := w.xdsClient()
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := c.DeltaAggregatedResources(ctx)
	if err == nil {
		err = s.Send(&discovery.DeltaDiscoveryRequest{Node: friendlyNode(), TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{name}})
	}
	for err == nil {
		var a *discovery.DeltaDiscoveryResponse
		if a, err = s.Recv(); err != nil {
			break
		}
		for _, r := range a.GetResources() {
			err = errors.Join(err, w.sawAssignment(f, r.GetResource()))
		}
		err = errors.Join(err, s.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: a.GetTypeUrl(), ResponseNonce: a.GetNonce()}))
	}
	return err
}

// subscribes asks for one service after another on one stream, like programs that begin to call them.
func (w *world) subscribes(ctx context.Context, f *friend) error {
	c, conn, err := w.xdsClient()
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := c.DeltaAggregatedResources(ctx)
	before := ""
	for n := 0; err == nil && waiting.Sleep(ctx, 20*time.Millisecond) == nil; n++ {
		name := fmt.Sprintf("ns/svc%d:http", n%numServices)
		began := time.Now()
		q := &discovery.DeltaDiscoveryRequest{Node: friendlyNode(), TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{name}}
		if before != "" {
			q.ResourceNamesUnsubscribe = []string{before}
		}
		before = name
		var a *discovery.DeltaDiscoveryResponse
		if err = s.Send(q); err == nil {
			a, err = s.Recv()
		}
		for err == nil && !slices.ContainsFunc(a.GetResources(), func(r *discovery.Resource) bool { return r.GetName() == name }) {
			a, err = s.Recv()
		}
		if err == nil {
			f.served(began, nil)
			err = s.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: a.GetTypeUrl(), ResponseNonce: a.GetNonce()})
		}
	}
	return err
}

// follows is an xDS client with the state of the world.
func (w *world) follows(ctx context.Context, f *friend) error {
	c, conn, err := w.xdsClient()
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := c.StreamAggregatedResources(ctx)
	if err == nil {
		err = s.Send(&discovery.DiscoveryRequest{Node: friendlyNode(), TypeUrl: resource.EndpointType, ResourceNames: []string{target}})
	}
	for err == nil {
		var a *discovery.DiscoveryResponse
		if a, err = s.Recv(); err != nil {
			break
		}
		for _, r := range a.GetResources() {
			err = errors.Join(err, w.sawAssignment(f, r))
		}
		err = errors.Join(err, s.Send(&discovery.DiscoveryRequest{
			TypeUrl: a.GetTypeUrl(), ResourceNames: []string{target}, VersionInfo: a.GetVersionInfo(), ResponseNonce: a.GetNonce(),
		}))
	}
	return err
}

// sawAssignment looks for the friendly cluster's backend.
func (w *world) sawAssignment(f *friend, packed *anypb.Any) error {
	var a endpointv3.ClusterLoadAssignment
	if err := packed.UnmarshalTo(&a); err != nil {
		return err
	}
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			if at := e.GetEndpoint().GetAddress().GetSocketAddress(); at.GetAddress() == w.friendly[0].addr(60000).String() {
				w.saw(f, at.GetPortValue())
			}
		}
	}
	return nil
}

// watches reads the changes of the HTTP API over TCP. A connection that ends is an error.
func (w *world) watches(ctx context.Context, f *friend) error {
	c, err := client.New(client.Options{Server: w.url(""), TLS: client.TLSFiles{CA: w.caFile}})
	if err != nil {
		return err
	}
	defer c.Close()
	backend := w.friendly[0].addr(60000).String()
	q := client.Query{Name: pulse}
	for e, err := range client.Watch[api.Service](ctx, c, "services", q, f.loses) {
		if err != nil {
			return err
		}
		if e.Object == nil {
			continue
		}
		for _, b := range e.Object.Backends {
			if b.IP == backend && len(b.Ports) > 0 {
				w.saw(f, uint32(b.Ports[0].Port))
			}
		}
	}
	return nil
}
