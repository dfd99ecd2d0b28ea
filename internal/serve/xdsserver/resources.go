package xdsserver

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
)

// connectTimeout is how long Envoy waits for a connection to a backend.
const connectTimeout = 5 * time.Second

// wholeWhileAny is the overprovisioning factor for Envoy, in percent: Envoy multiplies the usable share of a priority
// by it. It is so large that a priority keeps all traffic while it has one usable backend among 1,000. So Envoy fails
// over as gRPC does and as the choice intends, and not in proportion.
const wholeWhileAny = 100_000

// The functions below make resources without names: [body.named] adds them.

// listener returns the listener of a gRPC client for one target, with the route in it. For a name without a meaning it
// has no route, so that calls fail at once; without a listener they would wait (xds.md A4). It has a virtual host in
// any case: without one, calls of grpc-js would wait until their deadline.
func (n naming) listener(name string) (*listenerv3.Listener, error) {
	r := n.routes(name)
	r.Name = name // in a listener, the name is a part of the content
	router, err := anypb.New(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	manager, err := anypb.New(&hcmv3.HttpConnectionManager{
		StatPrefix:     "mesh",
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: r},
		HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
	})
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{ApiListener: &listenerv3.ApiListener{ApiListener: manager}}, nil
}

// routes returns routes that send everything to the cluster of the target.
func (n naming) routes(name string) *routev3.RouteConfiguration {
	host := &routev3.VirtualHost{Name: name, Domains: []string{"*"}}
	if t, ok := n.parse(name); ok {
		host.Routes = []*routev3.Route{{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusterName(t.service, t.port)},
				Timeout:          durationpb.New(0), // no timeout: that of the client applies
			}},
		}}
	}
	return &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{host}}
}

// cluster returns the same cluster for every name, for as long as the program runs: Envoy waits for endpoints after
// each change of a cluster. outliers is the interval of outlier detection; 0: there is none.
func cluster(outliers time.Duration) *clusterv3.Cluster {
	unbounded := wrapperspb.UInt32(math.MaxUint32) // the default of 1,024 would fail calls
	return &clusterv3.Cluster{
		OutlierDetection:     outlierDetection(outliers),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		}},
		ConnectTimeout: durationpb.New(connectTimeout),
		LbPolicy:       clusterv3.Cluster_ROUND_ROBIN,
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections: unbounded, MaxPendingRequests: unbounded, MaxRequests: unbounded,
		}}},
		CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{
			HealthyPanicThreshold: &typev3.Percent{}, // draining backends stay draining, however many there are
			LocalityConfigSpecifier: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
				LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
			},
		},
	}
}

// A backend is an outlier when nearly all of at least outlierCalls calls in one interval have failed. At least half of
// a group stays in use, however many fail.
const (
	outlierFailures = 85 // percent
	outlierCalls    = 5
	outlierBackends = 2 // a smaller group has no outliers
	outliersAtMost  = 50
)

// outlierDetection returns the one rule that both gRPC and Envoy support; the other rules are off.
func outlierDetection(interval time.Duration) *clusterv3.OutlierDetection {
	if interval == 0 {
		return nil
	}
	off, always := wrapperspb.UInt32(0), wrapperspb.UInt32(100)
	return &clusterv3.OutlierDetection{
		Interval: durationpb.New(interval), BaseEjectionTime: durationpb.New(3 * interval), MaxEjectionPercent: wrapperspb.UInt32(outliersAtMost),
		EnforcingFailurePercentage: always, FailurePercentageThreshold: wrapperspb.UInt32(outlierFailures),
		FailurePercentageMinimumHosts: wrapperspb.UInt32(outlierBackends), FailurePercentageRequestVolume: wrapperspb.UInt32(outlierCalls),
		EnforcingSuccessRate: off, EnforcingConsecutive_5Xx: off, EnforcingConsecutiveGatewayFailure: off,
	}
}

// assignment returns the assignment for a choice. The groups become priorities, numbered without gaps. The clusters
// become regions. The weight of a locality is the number of its backends, which are pods. The choice has each address
// once.
func assignment(c backends.Choice, onlyPort bool) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{
		Policy: &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(wholeWhileAny)},
	}
	var priority uint32
	for i := range c.Groups {
		if all := localities(&c.Groups[i], onlyPort, priority); len(all) > 0 {
			a.Endpoints = append(a.Endpoints, all...)
			priority++
		}
	}
	return a
}

// localities returns the localities of a group: one for each zone of each cluster.
func localities(g *backends.Group, onlyPort bool, priority uint32) []*endpointv3.LocalityLbEndpoints {
	all := make(map[place]*endpointv3.LocalityLbEndpoints)
	add := func(b *backends.Backend, health corev3.HealthStatus, weight uint32) {
		port, ok := portOf(b, onlyPort)
		if !ok {
			return
		}
		at := place{cluster: text(b.Cluster), zone: text(b.Zone)} // each locality must be unique
		l := all[at]
		if l == nil {
			l = &endpointv3.LocalityLbEndpoints{
				Locality: &corev3.Locality{Region: at.cluster, Zone: at.zone}, Priority: priority, LoadBalancingWeight: wrapperspb.UInt32(0),
			}
			all[at] = l
		}
		l.LbEndpoints = append(l.LbEndpoints, endpoint(b, port, health))
		l.LoadBalancingWeight.Value += weight
	}
	for i := range g.Backends {
		add(&g.Backends[i], corev3.HealthStatus_HEALTHY, 1)
	}
	for i := range g.Draining {
		add(&g.Draining[i], corev3.HealthStatus_DRAINING, 0)
	}
	sorted := make([]*endpointv3.LocalityLbEndpoints, 0, len(all))
	for _, l := range all {
		l.LoadBalancingWeight.Value = max(1, l.LoadBalancingWeight.Value) // with 0, the locality would be ignored, and leave a gap
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *endpointv3.LocalityLbEndpoints) int {
		return cmp.Or(strings.Compare(a.Locality.Region, b.Locality.Region), strings.Compare(a.Locality.Zone, b.Locality.Zone))
	})
	return sorted
}

func endpoint(b *backends.Backend, port uint16, health corev3.HealthStatus) *endpointv3.LbEndpoint {
	e := &endpointv3.Endpoint{Address: address(b.IP, port)}
	if b.Other.IsValid() {
		e.AdditionalAddresses = []*endpointv3.Endpoint_AdditionalAddress{{Address: address(b.Other, port)}}
	}
	return &endpointv3.LbEndpoint{HealthStatus: health, HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: e}}
}

func address(ip netip.Addr, port uint16) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: text(ip.String()), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}

// portOf returns the first TCP port of a backend; its ports are those that the target asks for. With only, a target
// without a port, the backend must have one TCP port alone: with several it is not used.
func portOf(b *backends.Backend, only bool) (port uint16, ok bool) {
	for _, p := range b.Ports {
		if p.Protocol != "TCP" && p.Protocol != "" {
			continue
		}
		if ok && only && p.Port != port {
			return 0, false
		}
		if !ok {
			port, ok = p.Port, true
		}
	}
	return port, ok
}

// usable is the number of endpoints in an assignment that take connections.
func usable(a *endpointv3.ClusterLoadAssignment) (n int) {
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			if e.GetHealthStatus() == corev3.HealthStatus_HEALTHY {
				n++
			}
		}
	}
	return n
}
