package xdsserver_test

import (
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// TestEnvoyWithStateOfTheWorld: Envoy asks for all clusters, without names. Its requests for types that are not served
// do not end the stream. A cluster never changes (xds.md E 14, 24).
func TestEnvoyWithStateOfTheWorld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "service own shop/cart ports=http:80,grpc:81 10.0.0.1\nservice east shop/pay 10.0.0.2,ports=a:1+b:2/UDP+c:3")
	s := w.sotw()
	s.ask(resource.ClusterType, nil, "")
	clusters := s.next()
	want(t, texts(t, clusters), "shop/cart:80", "shop/cart:81", "shop/pay:1", "shop/pay:3")
	s.ask(resource.ClusterType, clusters, "")
	s.ask(resource.EndpointType, nil, "", "shop/cart:80")
	s.ask(secretType, nil, "")
	s.ask(resource.ListenerType, nil, "")
	var listeners *discovery.DiscoveryResponse
	for range 2 {
		r := s.next()
		if r.GetTypeUrl() == resource.ListenerType {
			listeners = r
		} else {
			s.ask(resource.EndpointType, r, "", "shop/cart:80")
		}
	}
	if listeners == nil || len(listeners.GetResources()) != 0 {
		t.Errorf("an Envoy was given listeners of gRPC clients: %v", listeners)
	}
	s.ask(resource.ListenerType, listeners, "")
	w.Play(t, "no-service east shop/pay\nservice west shop/new 10.0.0.3")
	waittest.Until(t, "the clusters to be those of now", func() bool {
		r := s.next()
		if r.GetTypeUrl() != resource.ClusterType {
			return false
		}
		s.ask(resource.ClusterType, r, "")
		return slices.Equal(texts(t, r), []string{"shop/cart:80", "shop/cart:81", "shop/new:8080"})
	})
	w.Play(t, "service own shop/cart ports=http:80,grpc:81 10.0.0.7")
	r := s.next()
	if r.GetTypeUrl() != resource.EndpointType {
		t.Errorf("a change of a backend sends %s", r.GetTypeUrl())
	}
}

// TestIncremental: only changes are sent, removed resources are named, and a client that reconnects is sent the
// resources that it does not have (E 18, 19, 24).
func TestIncremental(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Play(t, "service own shop/cart 10.0.0.1\nservice east shop/pay 10.0.0.2")
	s := w.delta()
	s.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType})
	clusters := s.next()
	want(t, names(clusters), "shop/cart:8080", "shop/pay:8080")
	s.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, ResponseNonce: clusters.GetNonce()})
	s.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: secretType})
	s.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{"shop/cart:8080", "shop/pay:8080", "shop_cart"}})
	endpoints := s.next()
	want(t, names(endpoints), "shop/cart:8080", "shop/pay:8080", "shop_cart") // the last one cannot be a service, as it has no endpoints
	s.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: endpoints.GetNonce()})
	w.confirmed(1)

	w.Play(t, "service own shop/cart 10.0.0.1 10.0.0.3")
	changed := s.next()
	want(t, names(changed), "shop/cart:8080")
	s.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: changed.GetNonce()})
	w.confirmed(1)
	w.Play(t, "no-service east shop/pay")
	for range 2 {
		switch r := s.next(); r.GetTypeUrl() {
		case resource.ClusterType:
			want(t, r.GetRemovedResources(), "shop/pay:8080")
		case resource.EndpointType: // empty, not removed
			want(t, names(r), "shop/pay:8080")
			want(t, r.GetRemovedResources())
		}
	}

	known := make(map[string]string)
	for _, r := range clusters.GetResources() {
		known[r.GetName()] = r.GetVersion()
	}
	w.stop()
	w.start()
	again := w.delta()
	again.ask(&discovery.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType, InitialResourceVersions: known})
	r := again.next()
	want(t, names(r))
	want(t, r.GetRemovedResources(), "shop/pay:8080")
}

// delta is an incremental stream.
type delta struct {
	t  *testing.T
	to discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func (w *world) delta() delta {
	w.t.Helper()
	to, err := w.streams().DeltaAggregatedResources(waittest.Context(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	return delta{w.t, to}
}

func (d delta) ask(r *discovery.DeltaDiscoveryRequest) {
	d.t.Helper()
	r.Node = &corev3.Node{Id: "envoy-1", Cluster: "mesh", UserAgentName: "envoy"}
	if err := d.to.Send(r); err != nil {
		d.t.Fatal(err)
	}
}

func (d delta) next() *discovery.DeltaDiscoveryResponse {
	d.t.Helper()
	r, err := d.to.Recv()
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func names(r *discovery.DeltaDiscoveryResponse) (all []string) {
	for _, one := range r.GetResources() {
		all = append(all, one.GetName())
	}
	slices.Sort(all)
	return all
}
