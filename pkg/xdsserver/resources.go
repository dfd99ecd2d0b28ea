package xdsserver

import (
	"cmp"
	"math"
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

// wholeWhileAny is how many times over the usable share of a priority counts with Envoy, in percent:
// so much that it keeps all traffic while it has one usable backend among 1,000. So Envoy fails over as
// gRPC does, and as the choice says, and not in proportion.
const wholeWhileAny = 100_000

// listener is that of a gRPC client for one target, with its route in it. A name that means nothing
// has no route: calls fail at once, where without a listener they would wait (xds.md A4).
func (n naming) listener(name string) (*listenerv3.Listener, error) {
	router, err := anypb.New(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	manager, err := anypb.New(&hcmv3.HttpConnectionManager{
		StatPrefix:     "mesh",
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: n.routes(name)},
		HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
	})
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: manager}}, nil
}

// routes send everything to the cluster of the target.
func (n naming) routes(name string) *routev3.RouteConfiguration {
	r := &routev3.RouteConfiguration{Name: name}
	if t, ok := n.parse(name); ok {
		r.VirtualHosts = []*routev3.VirtualHost{{
			Name: name, Domains: []string{"*"},
			Routes: []*routev3.Route{{
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusterName(t.service, t.port)},
					Timeout:          durationpb.New(0), // that of the client counts
				}},
			}},
		}}
	}
	return r
}

// cluster is the same as long as the program runs: Envoy waits for endpoints after each change of one.
func cluster(name string) *clusterv3.Cluster {
	unbounded := wrapperspb.UInt32(math.MaxUint32) // the default of 1,024 would fail calls
	return &clusterv3.Cluster{
		Name:                 name,
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
			HealthyPanicThreshold: &typev3.Percent{}, // what is draining stays so, however many are
			LocalityConfigSpecifier: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
				LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
			},
		},
	}
}

// maxEndpoints is how many an assignment has at the most. Each takes about 60 bytes, and a message of
// more than 4 MiB ends everything that a client follows: one cluster must not be able to do that.
const maxEndpoints = 20_000

// bounded leaves so many backends of each cluster in a choice, best first, that all have room.
func bounded(c backends.Choice) backends.Choice {
	all := 0
	for _, g := range c.Groups {
		all += len(g.Backends) + len(g.Draining)
	}
	if all <= maxEndpoints {
		return c
	}
	clusters := make(map[string]int)
	for _, g := range c.Groups {
		for _, b := range slices.Concat(g.Backends, g.Draining) {
			clusters[b.Cluster] = 0
		}
	}
	share := maxEndpoints / len(clusters)
	take := func(from []backends.Backend) (some []backends.Backend) {
		for _, b := range from {
			if clusters[b.Cluster]++; clusters[b.Cluster] <= share {
				some = append(some, b)
			}
		}
		return some
	}
	groups := slices.Clone(c.Groups)
	for i := range groups {
		groups[i].Backends, groups[i].Draining = take(groups[i].Backends), take(groups[i].Draining)
	}
	return backends.Choice{Groups: groups}
}

// assignment carries a choice out: its groups are the priorities, numbered without gaps, clusters are
// regions, and each locality weighs as much as it has backends. The choice has each address once.
func assignment(name string, t target, c backends.Choice) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{
		ClusterName: name,
		Policy:      &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(wholeWhileAny)},
	}
	var priority uint32
	c = bounded(c)
	for i := range c.Groups {
		if all := localities(&c.Groups[i], t.port == "", priority); len(all) > 0 {
			a.Endpoints = append(a.Endpoints, all...)
			priority++
		}
	}
	return a
}

// localities are those of a group: one for each zone of each cluster.
func localities(g *backends.Group, onlyPort bool, priority uint32) []*endpointv3.LocalityLbEndpoints {
	type place struct{ cluster, zone string }
	all := make(map[place]*endpointv3.LocalityLbEndpoints)
	add := func(b *backends.Backend, health corev3.HealthStatus, weight uint32) {
		port, ok := portOf(b, onlyPort)
		if !ok {
			return
		}
		at := place{b.Cluster, b.Zone}
		l := all[at]
		if l == nil {
			l = &endpointv3.LocalityLbEndpoints{
				Locality: &corev3.Locality{Region: b.Cluster, Zone: b.Zone}, Priority: priority, LoadBalancingWeight: wrapperspb.UInt32(0),
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
		l.LoadBalancingWeight.Value = max(1, l.LoadBalancingWeight.Value) // 0 would leave the locality out, and a gap
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *endpointv3.LocalityLbEndpoints) int {
		return cmp.Or(strings.Compare(a.Locality.Region, b.Locality.Region), strings.Compare(a.Locality.Zone, b.Locality.Zone))
	})
	return sorted
}

func endpoint(b *backends.Backend, port uint16, health corev3.HealthStatus) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		HealthStatus: health,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: b.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
			}}},
		}},
	}
}

// portOf is the first port of a backend that speaks TCP, of those that were asked for. Who names none
// means the only one: a backend with several has none to go to.
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

// usable is how many endpoints of an assignment take connections.
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
