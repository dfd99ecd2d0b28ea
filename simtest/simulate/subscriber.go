package simulate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// subscriber is a client of the xDS server of an agent, which follows the endpoints of all services over connections that
// break at times. It keeps the endpoints that it has, as gRPC programs and Envoys do.
type subscriber struct {
	c           *cluster
	incremental bool // else each stream has the state of the world

	mu        sync.Mutex // guards everything below
	rng       *rand.Rand
	versions  map[string]string   // of the resources, by name
	endpoints map[string][]string // sorted
}

func subscribers(c *cluster) (all []*subscriber) {
	for i, incremental := range []bool{false, true} {
		all = append(all, &subscriber{
			c: c, incremental: incremental, rng: rand.New(rand.NewPCG(uint64(c.Own.ID), uint64(10+i))), //nolint:gosec // few
			versions: make(map[string]string), endpoints: make(map[string][]string),
		})
	}
	return all
}

// names are the resources that it follows.
func (s *subscriber) names() (all []string) {
	for i := range s.c.w.objects.Services {
		all = append(all, full(fmt.Sprint("s", i))+":http")
	}
	return all
}

// dial connects with the server. The connection breaks after some bytes.
func (s *subscriber) dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn, err := s.c.DialXDS(ctx, address)
	return breakingSome(conn, s.rng, s.c.w.scale), err
}

// run follows until ctx ends. The error is an answer that must not be.
func (s *subscriber) run(ctx context.Context) error {
	for ctx.Err() == nil {
		conn, err := grpc.NewClient("passthrough:///agent", grpc.WithContextDialer(s.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		client := discovery.NewAggregatedDiscoveryServiceClient(conn)
		follow := s.followWhole
		if s.incremental {
			follow = s.followChanges
		}
		wrong := follow(ctx, client)
		_ = conn.Close() // it has no more to do
		if wrong != nil && ctx.Err() == nil {
			return fmt.Errorf("the endpoints of %s over xDS: %w", s.c.Own.Name, wrong)
		}
		s.c.w.seen.note(resumedXDS)
		_ = waiting.Sleep(ctx, late/10) // an error: it has ended
	}
	return nil
}

// followWhole follows with the state of the world until the connection breaks.
func (s *subscriber) followWhole(ctx context.Context, client discovery.AggregatedDiscoveryServiceClient) error {
	stream, err := client.StreamAggregatedResources(ctx)
	if err != nil {
		return nil
	}
	request := &discovery.DiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNames: s.names(), Node: &corev3.Node{Id: "whole"}}
	for stream.Send(request) == nil {
		answer, err := stream.Recv()
		if err != nil {
			return nil
		}
		for _, one := range answer.GetResources() {
			if err := s.take(one, answer.GetVersionInfo()); err != nil {
				return err
			}
		}
		request.VersionInfo, request.ResponseNonce = answer.GetVersionInfo(), answer.GetNonce()
	}
	return nil
}

// followChanges follows the changes since the last stream until the connection breaks.
func (s *subscriber) followChanges(ctx context.Context, client discovery.AggregatedDiscoveryServiceClient) error {
	stream, err := client.DeltaAggregatedResources(ctx)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	request := &discovery.DeltaDiscoveryRequest{
		TypeUrl: resource.EndpointType, ResourceNamesSubscribe: s.names(), InitialResourceVersions: maps.Clone(s.versions), Node: &corev3.Node{Id: "changes"},
	}
	s.mu.Unlock()
	for stream.Send(request) == nil {
		answer, err := stream.Recv()
		if err != nil {
			return nil
		}
		for _, one := range answer.GetResources() {
			if err := s.take(one.GetResource(), one.GetVersion()); err != nil {
				return err
			}
		}
		if removed := answer.GetRemovedResources(); len(removed) > 0 {
			return fmt.Errorf("%q are removed, although the names are valid", removed)
		}
		request = &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: answer.GetNonce()}
	}
	return nil
}

// take takes the endpoints of a service.
func (s *subscriber) take(one *anypb.Any, version string) error {
	assignment := new(endpointv3.ClusterLoadAssignment)
	if err := one.UnmarshalTo(assignment); err != nil {
		return err
	}
	addresses := []string{}
	for _, group := range assignment.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			addresses = append(addresses, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	slices.Sort(addresses)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[assignment.GetClusterName()], s.endpoints[assignment.GetClusterName()] = version, addresses
	return nil
}

// difference returns how its endpoints differ from the backends of the services, by name; empty when they do not.
func (s *subscriber) difference(backends map[string][]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names() {
		have, is := s.endpoints[name]
		if service, _, _ := strings.Cut(name, ":"); !is || !slices.Equal(have, backends[service]) {
			return fmt.Sprintf("a client of xDS of %s (incremental: %t) has the endpoints %s of %s, not %s", s.c.Own.Name, s.incremental, have, name, backends[service])
		}
	}
	return ""
}
