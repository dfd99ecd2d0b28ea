package publish

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// EndpointsParams say which addresses are published, and where.
type EndpointsParams struct {
	// Layout says which identities are the cluster's.
	Layout wire.Layout
	// DefaultGlobalNamespace is for namespaces that do not say whether they are
	// global (spec wire.md §4.5).
	DefaultGlobalNamespace bool
	// To is where they are published.
	To Target
	// Report is called with the refused objects and the reasons, whenever these change; it may be nil.
	Report func(error)
	Log    *slog.Logger
}

// Endpoints publishes the addresses of all pods of a cluster with the identities
// that Cilium gave them, as their CiliumEndpoints and the slices of these say (spec wire.md §1.7, CRD mode).
// Those of a namespace that is not global are withheld. Of several endpoints with one
// address the one that was created first has it.
type Endpoints struct {
	EndpointsParams
	cluster *local.Cluster
	own     wire.ClusterInfo
	core    *podCore
	refusals
}

// NewEndpoints returns what publishes addresses.
func NewEndpoints(cluster *local.Cluster, own wire.ClusterInfo, p EndpointsParams) *Endpoints {
	return &Endpoints{
		EndpointsParams: p, cluster: cluster, own: own, core: newPodCore(),
		refusals: refusals{report: p.Report, why: make(map[string]string)},
	}
}

// Run publishes until ctx ends; it withdraws nothing then. It is called once.
func (e *Endpoints) Run(ctx context.Context) error {
	tables := append(endpointTables(e.cluster, nil), tableOf(e.cluster.Namespaces, endpointsInNamespace(e.cluster)))
	return follow(ctx, e.cluster, tables, e.apply, e.To.Complete)
}

// apply brings the endpoints of these names up to date. Nothing is published of one
// that is refused: what it said before may be another's address now.
func (e *Endpoints) apply(txn statedb.ReadTxn, names []string) {
	for _, name := range names {
		w, err := e.wanted(txn, name)
		if e.judge(name, err) {
			e.Log.Warn("Refused a CiliumEndpoint and published none of its addresses", "code", codes.AddressesRefused, "endpoint", name, "error", err)
		}
		publish(e.To, e.core.want(name, w))
	}
	e.tell()
}

// wanted is the value to publish for an endpoint; nil for none.
func (e *Endpoints) wanted(txn statedb.ReadTxn, name string) (*wantedPod, error) {
	o, found := e.cluster.Endpoint(txn, name)
	if !found || o.Status.Identity == nil || o.Status.Networking == nil {
		return nil, nil // it has no identity or no address yet
	}
	if err := e.validate(o); err != nil {
		return nil, err
	}
	namespace, _ := e.cluster.Namespaces.Get(txn, o.Namespace)
	w := &wantedPod{uid: o.UID, created: o.CreationTimestamp.Time, identity: identityOf(o), pairs: pairsOfEndpoint(o, "", "")}
	if w.identity == 0 || len(w.pairs) == 0 || !global(namespace, e.DefaultGlobalNamespace) {
		return nil, nil
	}
	return w, nil
}

// validate refuses what readers would refuse, or read as something else.
func (e *Endpoints) validate(o *local.CiliumEndpoint) error {
	id := o.Status.Identity.ID
	first, last := e.Layout.Range(e.own.ID)
	if id < 0 || id > math.MaxUint32 || id >= int64(wire.IdentityReservedEnd) && (id < int64(first) || id > int64(last)) {
		return fmt.Errorf("the identity %d is neither reserved nor of the cluster, %d to %d; compare --cluster-id with that of Cilium", id, first, last)
	}
	texts := []string{o.Status.Networking.NodeIP}
	for _, a := range o.Status.Networking.Addressing {
		texts = append(texts, a.IPv4, a.IPv6)
	}
	for _, text := range texts {
		if _, ok := address(text); !ok && text != "" {
			return fmt.Errorf("%q is no IP address", text)
		}
	}
	_, err := encryptionKey(o.Status.Encryption.Key)
	return err
}

// refusals are the problems of objects, by name.
type refusals struct {
	report func(error)
	why    map[string]string
	news   bool
}

// judge notes whether an object is refused, and reports whether that has to be said.
func (r *refusals) judge(name string, err error) (news bool) {
	was, refused := r.why[name]
	switch {
	case err == nil && refused:
		delete(r.why, name)
		r.news = true
	case err != nil && was != err.Error():
		r.why[name] = err.Error()
		r.news = true
		return true
	}
	return false
}

// tell reports the refused objects, if they have changed.
func (r *refusals) tell() {
	if !r.news || r.report == nil {
		return
	}
	r.news = false
	if len(r.why) == 0 {
		r.report(nil)
		return
	}
	first := slices.Min(slices.Collect(maps.Keys(r.why)))
	err := fmt.Errorf("%s: %s", first, r.why[first])
	if n := len(r.why) - 1; n > 0 {
		err = fmt.Errorf("%w; and %d more", err, n)
	}
	r.report(err)
}
