package publish

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// OwnServices gives the merged view of services those of our own cluster: all of its services,
// exported or not, with everything that is known of their backends and with the affinity of
// their annotations (spec wire.md §4.4); on request also its exports through the MCS API.
type OwnServices struct {
	// Exports: there is no kvstore from which the view has our own exports. It is set before Run.
	Exports bool

	cluster       *local.Cluster
	own           wire.ClusterInfo
	defaultGlobal bool
	to            *services.Services
	log           *slog.Logger

	members  *members
	refusals // unknown affinities, by service
}

// NewOwnServices returns the view's writer of our own cluster's services. No other code may apply them to the view. They are
// hidden until it runs ([local.Cluster.Hidden]).
func NewOwnServices(cluster *local.Cluster, own wire.ClusterInfo, defaultGlobalNamespace bool, to *services.Services, log *slog.Logger) *OwnServices {
	cluster.Hidden()
	return &OwnServices{
		cluster: cluster, own: own, defaultGlobal: defaultGlobalNamespace, to: to, log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		members: newMembers(cluster), refusals: refusals{why: make(map[string]string)},
	}
}

// Run fills the view until ctx ends; it withdraws nothing then. It is called once.
func (v *OwnServices) Run(ctx context.Context) error {
	tables := []table{
		tableOf(v.cluster.Services, nil),
		tableOf(v.cluster.Namespaces, inNamespace(v.cluster.Services)),
		tableOf(v.cluster.EndpointSlices, v.members.take),
	}
	if v.Exports {
		tables = append(tables, tableOf(v.cluster.ServiceExports, nil))
	}
	return follow(ctx, v.cluster, tables, func(txn statedb.ReadTxn, names []string) {
		changes := make([]store.Change[services.Service], 0, len(names))
		for _, name := range names {
			changes = append(changes, v.change(txn, name))
		}
		v.to.Apply(changes) // it ignores services without a change
		if v.Exports {
			v.to.ApplyExports(v.exports(txn, names))
		}
		v.cluster.Shown()
	}, func() {})
}

// change is what became of the service of this name.
func (v *OwnServices) change(txn statedb.ReadTxn, name string) store.Change[services.Service] {
	if svc, found := v.cluster.Services.Get(txn, name); !found {
		v.judge(name, nil)
	} else if s := v.service(txn, name, svc); s != nil {
		return store.Change[services.Service]{Name: name, New: s}
	}
	namespace, short, _ := strings.Cut(name, "/")
	return store.Change[services.Service]{Name: name, Old: &services.Service{Cluster: v.own.Name, Namespace: namespace, Name: short}}
}

// exports is what became of the exports of these names: what other clusters would read of them.
func (v *OwnServices) exports(txn statedb.ReadTxn, names []string) []store.Change[services.Export] {
	changes := make([]store.Change[services.Export], 0, len(names))
	for _, name := range names {
		ch := store.Change[services.Export]{Name: name}
		if value := exportOf(txn, v.cluster, v.own, name, v.defaultGlobal); value != nil && value.CheckNames() == nil {
			ch.New = services.ExportFromWire(value)
		} else {
			namespace, short, _ := strings.Cut(name, "/")
			ch.Old = &services.Export{Cluster: v.own.Name, Namespace: namespace, Name: short}
		}
		changes = append(changes, ch)
	}
	return changes
}

// service is our own part in a service; nil when a text of it breaks the rules that those of remotes have to follow, too:
// files are not checked by an API server, and that does not check everything.
func (v *OwnServices) service(txn statedb.ReadTxn, name string, svc *corev1.Service) *services.Service {
	slices := v.members.of(txn, name)
	value := Service(v.own, svc, slices)
	if err := value.CheckNames(); err != nil {
		if v.judge(name, err) {
			v.log.Warn("A service is not shown; correct the object that has the name, or the slices of the service", "service", name, "error", err)
		}
		return nil
	}
	s := services.FromWire(value, wire.SourceKubernetes)
	a, err := wire.ParseServiceAnnotations(svc.Annotations)
	if v.judge(name, err) {
		v.log.Warn("Ignored an unknown affinity of a service; use local, remote or none", "service", name, "error", err)
	}
	s.Shared = Exported(svc, namespaceOf(txn, v.cluster, name), v.defaultGlobal)
	s.IncludeExternal, s.Affinity = a.Global, a.Affinity
	var details []*services.Slice
	for _, slice := range slices {
		if w := EndpointSlice(v.own, slice); w != nil && w.CheckNames() == nil {
			details = append(details, services.SliceFromWire(w, wire.SourceKubernetes))
		}
	}
	return s.WithSlices(details)
}
