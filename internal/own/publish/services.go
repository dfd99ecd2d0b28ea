package publish

import (
	"context"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ServiceTargets are where services go, in both formats, and exports. Each may
// be nil: then that is not published.
type ServiceTargets struct {
	Services, EndpointSlices, ServiceExports Target
}

// Services publishes the cluster's services: those that are exported, with their slices, and
// those that a ServiceExport marks.
type Services struct {
	cluster       *local.Cluster
	own           wire.ClusterInfo
	defaultGlobal bool

	members           *members
	touched           map[string]struct{} // slices that changed
	services, exports output
	endpointSlices    Target
	slices            map[string]*discoveryv1.EndpointSlice // as they are published
	encoder           *wire.SliceEncoder
}

// NewServices returns what publishes services. Namespaces that do not say whether
// they are global are as defaultGlobalNamespace says (spec wire.md §4.5).
func NewServices(cluster *local.Cluster, own wire.ClusterInfo, defaultGlobalNamespace bool, to ServiceTargets) *Services {
	return &Services{
		cluster: cluster, own: own, defaultGlobal: defaultGlobalNamespace,
		members: newMembers(cluster), touched: make(map[string]struct{}),
		services: newOutput(to.Services), exports: newOutput(to.ServiceExports), endpointSlices: to.EndpointSlices,
		slices: make(map[string]*discoveryv1.EndpointSlice),
	}
}

// Run publishes until ctx ends; it withdraws nothing then. It is called once.
func (s *Services) Run(ctx context.Context) error {
	s.encoder = wire.NewSliceEncoder()
	defer s.encoder.Close()
	tables := []table{
		tableOf(s.cluster.Services, nil),
		tableOf(s.cluster.ServiceExports, nil),
		tableOf(s.cluster.EndpointSlices, func(txn statedb.ReadTxn, slice *discoveryv1.EndpointSlice, deleted bool, t touch) {
			s.touched[local.Name(slice)] = struct{}{}
			s.members.take(txn, slice, deleted, t)
		}),
		tableOf(s.cluster.Namespaces, inNamespace(s.cluster.Services)), // without a service there is no export either
	}
	return follow(ctx, s.cluster, tables, s.apply, func() {
		s.services.complete()
		s.exports.complete()
		output{to: s.endpointSlices}.complete()
	})
}

// apply brings the services of these names up to date, and the slices that
// changed or belong to them.
func (s *Services) apply(txn statedb.ReadTxn, names []string) {
	for _, name := range names {
		var service, export []byte
		if svc := s.exported(txn, name); svc != nil && s.services.to != nil {
			service = Service(s.own, svc, s.members.of(txn, name)).Encode()
		}
		if s.exports.to != nil {
			if value := exportOf(txn, s.cluster, s.own, name, s.defaultGlobal); value != nil {
				export = value.Encode()
			}
		}
		s.services.set(name, service)
		s.exports.set(name, export)
		for slice := range s.members.slices.members[name] {
			s.touched[slice] = struct{}{}
		}
	}
	for name := range s.touched {
		s.slice(txn, name)
	}
	clear(s.touched)
}

// exported returns the service if it is published to other clusters, else nil.
func (s *Services) exported(txn statedb.ReadTxn, name string) *corev1.Service {
	svc, found := s.cluster.Services.Get(txn, name)
	if !found || !Exported(svc, namespaceOf(txn, s.cluster, name), s.defaultGlobal) {
		return nil
	}
	return svc
}

// slice brings one slice up to date. One that is as it was is not encoded again.
func (s *Services) slice(txn statedb.ReadTxn, name string) {
	if s.endpointSlices == nil {
		return
	}
	was, published := s.slices[name]
	slice, found := s.cluster.EndpointSlices.Get(txn, name)
	if found && s.exported(txn, serviceOf(slice)) != nil {
		if slice == was {
			return
		}
		if value := EndpointSlice(s.own, slice); value != nil {
			s.slices[name] = slice
			s.endpointSlices.Put(name, s.encoder.Encode(value))
			return
		}
	}
	if published {
		delete(s.slices, name)
		s.endpointSlices.Delete(name)
	}
}
