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

// Services publishes the cluster's services: those that are exported, with their
// slices, and those that a ServiceExport marks. One that does not qualify any
// more is withdrawn.
type Services struct {
	cluster       *local.Cluster
	own           wire.ClusterInfo
	defaultGlobal bool
	to            ServiceTargets

	members  *members
	touched  map[string]struct{} // slices that changed
	services map[string]struct{} // that are published
	exports  map[string]struct{}
	slices   map[string]*discoveryv1.EndpointSlice // as they are published
	encoder  *wire.SliceEncoder
}

// NewServices returns what publishes services. Namespaces that do not say whether
// they are global are as defaultGlobalNamespace says (spec wire.md §4.5).
func NewServices(cluster *local.Cluster, own wire.ClusterInfo, defaultGlobalNamespace bool, to ServiceTargets) *Services {
	return &Services{
		cluster: cluster, own: own, defaultGlobal: defaultGlobalNamespace, to: to,
		members: newMembers(cluster), touched: make(map[string]struct{}),
		services: make(map[string]struct{}), exports: make(map[string]struct{}),
		slices: make(map[string]*discoveryv1.EndpointSlice),
	}
}

// Run publishes until ctx ends; it withdraws nothing then. It is called once.
func (s *Services) Run(ctx context.Context) error {
	s.encoder = wire.NewSliceEncoder()
	defer s.encoder.Close()
	return follow(ctx, s.cluster, s.tables(), s.apply, func() {
		for _, to := range []Target{s.to.Services, s.to.EndpointSlices, s.to.ServiceExports} {
			if to != nil {
				to.Complete()
			}
		}
	})
}

func (s *Services) tables() []table {
	return []table{
		tableOf(s.cluster.Services, nil),
		tableOf(s.cluster.ServiceExports, nil),
		tableOf(s.cluster.EndpointSlices, func(_ statedb.ReadTxn, slice *discoveryv1.EndpointSlice, deleted bool, t touch) {
			s.touched[local.Name(slice)] = struct{}{}
			s.members.take(slice, deleted, t)
		}),
		tableOf(s.cluster.Namespaces, inNamespace(s.cluster)), // without a service there is no export either
	}
}

// apply brings the services of these names up to date, and the slices that
// changed or belong to them.
func (s *Services) apply(txn statedb.ReadTxn, names []string) {
	for _, name := range names {
		s.service(txn, name)
		s.export(txn, name)
		for slice := range s.members.slices[name] {
			s.touched[slice] = struct{}{}
		}
	}
	for name := range s.touched {
		s.slice(txn, name)
	}
	clear(s.touched)
}

// exported returns the service if other clusters are told of it, else nil.
func (s *Services) exported(txn statedb.ReadTxn, name string) *corev1.Service {
	svc, found := s.cluster.Services.Get(txn, name)
	if !found || !Exported(svc, namespaceOf(txn, s.cluster, name), s.defaultGlobal) {
		return nil
	}
	return svc
}

func (s *Services) service(txn statedb.ReadTxn, name string) {
	if s.to.Services == nil {
		return
	}
	if svc := s.exported(txn, name); svc != nil {
		put(s.to.Services, s.services, name, Service(s.own, svc, s.members.of(txn, name)).Encode())
	} else {
		withdraw(s.to.Services, s.services, name)
	}
}

func (s *Services) export(txn statedb.ReadTxn, name string) {
	if s.to.ServiceExports == nil {
		return
	}
	if value := exportOf(txn, s.cluster, s.own, name, s.defaultGlobal); value != nil {
		put(s.to.ServiceExports, s.exports, name, value.Encode())
	} else {
		withdraw(s.to.ServiceExports, s.exports, name)
	}
}

// slice brings one slice up to date. One that is as it was is not encoded again.
func (s *Services) slice(txn statedb.ReadTxn, name string) {
	if s.to.EndpointSlices == nil {
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
			s.to.EndpointSlices.Put(name, s.encoder.Encode(value))
			return
		}
	}
	if published {
		delete(s.slices, name)
		s.to.EndpointSlices.Delete(name)
	}
}

// put publishes, and notes that it did.
func put(to Target, published map[string]struct{}, name string, value []byte) {
	published[name] = struct{}{}
	to.Put(name, value)
}

// withdraw takes back what is published, if it is.
func withdraw(to Target, published map[string]struct{}, name string) {
	if _, was := published[name]; was {
		delete(published, name)
		to.Delete(name)
	}
}
