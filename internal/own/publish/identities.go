package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// IdentitiesParams say which identities are published, and where.
type IdentitiesParams struct {
	// Layout says which numbers are the cluster's.
	Layout wire.Layout
	// DefaultGlobalNamespace is for namespaces that do not say whether they are
	// global (spec wire.md §4.5).
	DefaultGlobalNamespace bool
	// To is where they are published.
	To  Target
	Log *slog.Logger
}

// Identities publishes the identities that Cilium keeps as objects of Kubernetes, with their
// numbers (spec wire.md §1.6). Those of pods in a namespace that is not global are withheld.
type Identities struct {
	IdentitiesParams
	cluster *local.Cluster
	expect  wire.Expect

	output
	namespaces groups              // of identities
	bad        map[string]struct{} // those that cannot be published: each is logged once
}

// NewIdentities returns what publishes identities.
func NewIdentities(cluster *local.Cluster, own wire.ClusterInfo, p IdentitiesParams) *Identities {
	return &Identities{
		IdentitiesParams: p, cluster: cluster, expect: wire.Expect{Cluster: own.Name, ClusterID: own.ID, Layout: p.Layout},
		output: newOutput(p.To), namespaces: newGroups(), bad: make(map[string]struct{}),
	}
}

// Run publishes until ctx ends; it withdraws nothing then. It is called once.
func (i *Identities) Run(ctx context.Context) error {
	tables := []table{
		tableOf(i.cluster.CiliumIdentities, func(_ statedb.ReadTxn, o *local.CiliumIdentity, deleted bool, t touch) {
			namespace := ""
			if !deleted {
				namespace = o.SecurityLabels[wire.LabelSourceKubernetes+":"+labelNamespace]
			}
			i.namespaces.set(o.Name, namespace)
			t(o.Name)
		}),
		tableOf(i.cluster.Namespaces, func(_ statedb.ReadTxn, n *corev1.Namespace, _ bool, t touch) {
			for name := range i.namespaces.members[n.Name] {
				t(name)
			}
		}),
	}
	return follow(ctx, i.cluster, tables, i.apply, i.To.Complete)
}

// apply brings the identities of these names up to date. Those that cannot be published get one
// warning together: they may be very many, after a change of the cluster's ID.
func (i *Identities) apply(txn statedb.ReadTxn, names []string) {
	var first error
	skipped := 0
	for _, name := range names {
		value, err := i.value(txn, name)
		_, known := i.bad[name]
		switch {
		case err == nil:
			delete(i.bad, name)
		case !known:
			i.bad[name] = struct{}{}
			if skipped++; first == nil {
				first = err
			}
		}
		i.set(name, value)
	}
	if skipped > 0 {
		i.Log.Warn("Skipped CiliumIdentities that other clusters refuse; compare --cluster-id with the cluster ID of Cilium",
			"number", skipped, "first", first)
	}
}

// value is the value to publish under the name; nil for none.
func (i *Identities) value(txn statedb.ReadTxn, name string) ([]byte, error) {
	o, found := i.cluster.CiliumIdentities.Get(txn, name)
	if !found {
		return nil, nil
	}
	id, err := wire.DecodeIdentityName(name, i.expect)
	if err == nil && strconv.FormatUint(uint64(id), 10) != name {
		err = errors.New("its name is not how the number is written")
	}
	labels := wire.LabelsFromMap(o.SecurityLabels)
	if err == nil && len(labels) == 0 {
		err = errors.New("it has no labels")
	}
	if err != nil {
		return nil, fmt.Errorf("the CiliumIdentity %s: %w", name, err)
	}
	if namespace, has := i.namespaces.of[name]; has {
		one, _ := i.cluster.Namespaces.Get(txn, namespace)
		if !global(one, i.DefaultGlobalNamespace) {
			return nil, nil
		}
	}
	return wire.Identity{ID: id, Labels: labels}.Encode(), nil
}
