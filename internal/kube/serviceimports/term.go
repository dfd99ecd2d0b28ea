package serviceimports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// term is one run of a controller. It belongs to one goroutine, but for what its rounds share.
type term struct {
	*Controller
	reconcile.Work
	remoteExports *tables.Follower[*services.Export]
	exports       *tables.Follower[*local.ServiceExport]
	imports       *tables.Follower[*local.ServiceImport]
	services      *tables.Follower[*corev1.Service]
	slices        *tables.Follower[*discoveryv1.EndpointSlice]
	namespaces    *tables.Follower[*corev1.Namespace]

	// Names are "namespace/name" throughout.
	names    map[string]struct{} // of everything that is exported or imported
	ours     map[string]struct{} // of the imports that were written here
	bySlice  map[string]string   // by slice the Service that it belongs to
	byOwner  map[string][]string // and the other way round
	families []string            // of addresses that Services have
	asked    time.Time           // for the families
	foreign  map[string]string   // why a name is not written: its object has another writer
	room     *shares
	seen     map[string]time.Time // by remote cluster since when it is known
	leftOut  map[string]string    // names without room, by the cluster that they would follow
	said     bool                 // "everything is correct" was logged
}

// follow begins a term that has seen nothing.
func (c *Controller) follow() (*term, error) {
	t := &term{
		Controller: c, Work: reconcile.New(c.Boundary.Run), names: make(map[string]struct{}), ours: make(map[string]struct{}), bySlice: make(map[string]string),
		byOwner: make(map[string][]string), foreign: make(map[string]string), leftOut: make(map[string]string),
		room: newShares(c.Own.Name, c.MaxImports), seen: make(map[string]time.Time),
	}
	var errs [6]error
	t.remoteExports, errs[0] = tables.Follow(c.DB, c.Services.ServiceExports())
	t.exports, errs[1] = c.Cluster.ServiceExports.Follow()
	t.imports, errs[2] = c.Cluster.ServiceImports.Follow()
	t.services, errs[3] = c.Cluster.Services.Follow()
	t.slices, errs[4] = c.Cluster.EndpointSlices.Follow()
	t.namespaces, errs[5] = c.Cluster.Namespaces.Follow()
	if err := errors.Join(errs[:]...); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *term) followers() []tables.AnyFollower {
	return []tables.AnyFollower{t.remoteExports, t.exports, t.imports, t.services, t.slices, t.namespaces}
}

func (t *term) close() {
	for _, f := range t.followers() {
		f.Close()
	}
}

// Gather implements [reconcile.Steps].
func (t *term) Gather(txn statedb.ReadTxn) *statedb.WatchSet {
	note := func(name string) { t.names[name] = struct{}{}; t.Touch(name) }
	t.remoteExports.DrainTo(txn, func(e *services.Export, _ bool) { note(e.FullName()) })
	t.exports.DrainTo(txn, func(e *local.ServiceExport, _ bool) { note(local.Name(e)) })
	t.imports.DrainTo(txn, func(im *local.ServiceImport, deleted bool) {
		note(local.Name(im))
		delete(t.ours, local.Name(im))
		if deleted {
			t.room.count(local.Name(im), "")
		}
		if !deleted && im.Labels[mcs.LabelWritten] == mcs.Written {
			t.ours[local.Name(im)] = struct{}{}
		}
	})
	t.services.DrainTo(txn, func(svc *corev1.Service, _ bool) {
		t.Touch(local.Name(svc))
		if imported := svc.Labels[mcs.LabelServiceName]; imported != "" {
			t.Touch(svc.Namespace + "/" + imported)
		}
	})
	t.slices.DrainTo(txn, func(slice *discoveryv1.EndpointSlice, deleted bool) { t.takeSlice(slice, deleted) })
	touched := make(map[string]bool)
	t.namespaces.DrainTo(txn, func(n *corev1.Namespace, _ bool) { touched[n.Name] = true })
	if len(touched) > 0 {
		for name := range t.names {
			if namespace, _, _ := strings.Cut(name, "/"); touched[namespace] {
				t.Touch(name)
			}
		}
	}
	return tables.WatchSet(t.followers()...)
}

// takeSlice notes to which Service a slice belongs, and touches what follows from it.
func (t *term) takeSlice(slice *discoveryv1.EndpointSlice, deleted bool) {
	name := local.Name(slice)
	if before, known := t.bySlice[name]; known {
		t.byOwner[before] = slices.DeleteFunc(t.byOwner[before], func(s string) bool { return s == name })
		if len(t.byOwner[before]) == 0 {
			delete(t.byOwner, before)
		}
		delete(t.bySlice, name)
		t.Touch(before)
	}
	if service := slice.Labels[wire.LabelServiceName]; service != "" && !deleted {
		owner := slice.Namespace + "/" + service
		t.bySlice[name] = owner
		t.byOwner[owner] = append(t.byOwner[owner], name)
		t.Touch(owner)
	}
	if imported := slice.Labels[mcs.LabelServiceName]; imported != "" {
		t.Touch(slice.Namespace + "/" + imported)
	}
}

// Look implements [reconcile.Steps]: it looks for clusters that were read or removed, for the families of addresses,
// and for room for services that had none.
func (t *term) Look(ctx context.Context, now time.Time) {
	if remotes := t.Remotes(); t.SetRemotes(remotes) {
		t.see(remotes, now)
		t.touchAll()
	}
	if now.Sub(t.asked) >= familiesAgain {
		if err := t.askFamilies(ctx, now); err != nil && ctx.Err() == nil {
			t.Log.Warn("Cannot read the address families of the cluster; the previous ones stay in use", "error", err)
		}
	}
	t.Metrics.imports.Set(float64(len(t.ours)))
	t.Metrics.leftOut.Set(float64(len(t.leftOut)))
	if t.room.wasFreed() {
		for name := range t.leftOut {
			t.Touch(name)
		}
	}
}

// see notes since when the clusters are known, and how many have a share. All that are there when the term
// begins are known since then: what the dates of their exports say of the time before cannot be checked.
func (t *term) see(remotes []reconcile.Remote, now time.Time) {
	is := make(map[string]bool, len(remotes))
	for _, r := range remotes {
		if is[r.Name] = true; t.seen[r.Name].IsZero() {
			t.seen[r.Name] = now
		}
	}
	maps.DeleteFunc(t.seen, func(cluster string, _ time.Time) bool { return !is[cluster] })
	t.room.setClusters(len(remotes))
}

func (t *term) touchAll() {
	for name := range t.names {
		t.Touch(name)
	}
}

// ReportProblems implements [reconcile.Steps], and says once that everything was done.
func (t *term) ReportProblems() {
	if !t.said && t.Clean() {
		t.said = true
		t.Log.Info("All objects of the MCS API are up to date", "imports", len(t.ours))
	}
	t.Report(Task, t.trouble())
}

// trouble returns the current problems; nil when there are none.
func (t *term) trouble() error {
	errs := []error{t.Failed("services do not have the objects of the MCS API that they should have")}
	if n := len(t.foreign); n > 0 {
		first := slices.Min(slices.Collect(maps.Keys(t.foreign)))
		errs = append(errs, fmt.Errorf("%d services are not imported, such as %s: %s", n, first, t.foreign[first]))
	}
	if n := len(t.leftOut); n > 0 {
		errs = append(errs, fmt.Errorf("%s: %d services are not imported, such as %s (%s): of %d imports (--mcs-max-imports), a cluster may have %d, and a namespace of a cluster %d; "+
			"see what these clusters export with 'mesh-agent get serviceexports', and bound it with a claim policy (docs/claims.md), or raise the flag",
			codes.ImportsLeftOut, n, slices.Min(slices.Collect(maps.Keys(t.leftOut))), t.leftOutBy(), t.MaxImports, t.room.ofCluster(), t.room.ofNamespace()))
	}
	return errors.Join(errs...)
}

// leftOutBy says of which clusters services are left out, and how many.
func (t *term) leftOutBy() string {
	by := make(map[string]int)
	for _, cluster := range t.leftOut {
		by[cluster]++
	}
	var all []string
	for _, cluster := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%s: %d", cluster, by[cluster]))
	}
	return strings.Join(all, ", ")
}
