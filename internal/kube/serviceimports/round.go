package serviceimports

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/internal/own/publish"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// objects are the existing objects of one service in the own cluster; nil where there is none.
type objects struct {
	namespace *corev1.Namespace
	service   *corev1.Service // of the same name
	slices    []*discoveryv1.EndpointSlice
	export    *local.ServiceExport
	imported  *local.ServiceImport         // of any writer
	derived   *corev1.Service              // of any writer
	copies    []*discoveryv1.EndpointSlice // slices of the derived Service that were written here
}

// work has the existing and the wanted objects of one service.
type work struct {
	name   string
	is     objects
	wanted mcs.Wanted
	copies []*discoveryv1.EndpointSlice
	// exported: a cluster exports the service, whether or not it can be imported.
	exported bool
	// foreign: another writer made the import, so only the own export's status is written.
	foreign bool
}

// Round implements [reconcile.Steps]. It makes a plan for everything that is dirty, from one snapshot, and
// carries the plans out at once.
func (t *term) Round(ctx context.Context, txn statedb.ReadTxn, now time.Time) {
	names := t.Take(0)
	slices.SortStableFunc(names, func(a, b string) int { return t.isNew(a) - t.isNew(b) })
	plan := func(name string) (w work, todo bool) {
		w = t.plan(txn, name, now)
		if w.isEmpty() && !w.exported { // else it is imported when its namespace is there
			delete(t.names, name)
		}
		return w, !w.isEmpty()
	}
	if reconcile.CarryOut(ctx, &t.Work, now, t.Writer.AtOnce(), names, plan, t.write) {
		t.Log.Warn("Cannot write objects of the MCS API, trying again", "error", t.trouble())
	}
}

// isNew is 1 for a name without an import of ours, else 0: existing imports get room before new ones.
func (t *term) isNew(name string) int {
	if _, is := t.ours[name]; is {
		return 0
	}
	return 1
}

// isEmpty tells of a name of which there is nothing, and should be nothing.
func (w *work) isEmpty() bool {
	return w.is.export == nil && w.is.imported == nil && w.is.derived == nil && len(w.is.copies) == 0 && w.wanted.Import == nil
}

// find gathers the existing objects of a service.
func (t *term) find(txn statedb.ReadTxn, name string) (o objects) {
	namespace, short, _ := strings.Cut(name, "/")
	derived := namespace + "/" + wire.DerivedServiceName(namespace, short)
	o.namespace, _ = t.Cluster.Namespaces.Get(txn, namespace)
	o.service, _ = t.Cluster.Services.Get(txn, name)
	o.export, _ = t.Cluster.ServiceExports.Get(txn, name)
	o.imported, _ = t.Cluster.ServiceImports.Get(txn, name)
	o.derived, _ = t.Cluster.Services.Get(txn, derived)
	o.slices = t.slicesOf(txn, name)
	o.copies = slices.DeleteFunc(t.slicesOf(txn, derived), func(s *discoveryv1.EndpointSlice) bool {
		return s.Labels[mcs.LabelWritten] != mcs.Written || s.Labels[discoveryv1.LabelManagedBy] != mcs.ManagedByLocalSlice
	})
	return o
}

// slicesOf are the slices of a Service, of any writer.
func (t *term) slicesOf(txn statedb.ReadTxn, service string) (all []*discoveryv1.EndpointSlice) {
	for _, name := range t.byOwner[service] {
		if slice, found := t.Cluster.EndpointSlices.Get(txn, name); found {
			all = append(all, slice)
		}
	}
	return all
}

// plan computes the wanted objects of a service.
func (t *term) plan(txn statedb.ReadTxn, name string, now time.Time) work {
	delete(t.foreign, name)
	delete(t.leftOut, name)
	w := work{name: name, is: t.find(txn, name)}
	facts := t.facts(&w.is, now)
	exports := t.exportsOf(txn, name, &w.is, facts)
	w.exported = len(exports) > 0
	facts.Hold = t.isHeld(&w, exports)
	facts.Winner = winnerOf(w.is.imported, exports)
	namespace, short, _ := strings.Cut(name, "/")
	w.wanted = mcs.Make(namespace, short, exports, facts)
	if needsRoom(&w, exports, facts) {
		facts.Winner = t.room.choose(name, facts.Precedence().Order(exports))
		if w.wanted = mcs.Make(namespace, short, exports, facts); facts.Winner == "" {
			t.leftOut[name] = w.wanted.Import.Annotations[mcs.AnnotationWinner]
			w.wanted.Import, w.wanted.Derived = nil, nil
		}
	}
	t.count(&w)
	// When no cluster exports the service, an import of another writer does not concern this program, and nothing is
	// missing.
	if w.foreign = isForeign(w.is.imported) && w.wanted.Import != nil; w.foreign {
		t.foreign[name] = "there is a ServiceImport of that name that this program has not made: delete it, or label it " + mcs.LabelWritten + "=" + mcs.Written
		return w
	}
	if facts.Foreign != "" {
		if w.wanted.Import != nil {
			t.foreign[name] = facts.Foreign
		}
		w.wanted.Derived, w.wanted.Recreate, w.wanted.Local = nil, false, false
	}
	if w.wanted.Local {
		w.copies = mcs.LocalSlices(t.Own.Name, w.wanted, w.is.service, w.is.slices)
	}
	return w
}

// facts are those of the own cluster.
func (t *term) facts(is *objects, now time.Time) mcs.Facts {
	f := mcs.Facts{
		Cluster: t.Own.Name, Families: t.families, Slices: t.Slices, Import: is.imported, Derived: is.derived, Now: now,
		Seen: func(cluster string) time.Time { return t.seen[cluster] }, Labels: t.Labels, Annotations: t.Annotations,
	}
	switch n := is.namespace; {
	case n == nil || n.DeletionTimestamp != nil:
	case wire.NamespaceIsGlobal(n.Annotations, t.GlobalNamespaces):
		f.Namespace = mcs.NamespaceGlobal
	default:
		f.Namespace = mcs.NamespaceNotGlobal
	}
	if is.export != nil {
		f.Export = &mcs.OwnExport{Service: is.service, Conditions: is.export.Status.Conditions}
	}
	if d := is.derived; d != nil && !isOurs(d.Labels) {
		f.Derived = nil
		f.Foreign = "There is a Service " + d.Name + ", the name of the one that has the addresses of the import, that this program has not made: " +
			"delete it, or label it " + mcs.LabelWritten + "=" + mcs.Written + "."
	}
	return f
}

// exportsOf are all clusters' exports of a service. The own cluster's export follows from its objects: its entry in the
// kvstore may be older.
func (t *term) exportsOf(txn statedb.ReadTxn, name string, is *objects, f mcs.Facts) (all []*services.Export) {
	namespace, short, _ := strings.Cut(name, "/")
	for e := range t.Services.ServiceExports().List(txn, services.ExportsByName(namespace, short)) {
		if e.Cluster != t.Own.Name {
			all = append(all, e)
		}
	}
	if is.export != nil && is.service != nil && f.Namespace == mcs.NamespaceGlobal {
		if own := publish.ServiceExport(t.Own, is.export, is.service); own != nil {
			all = append(all, services.ExportFromWire(own))
		}
	}
	return all
}

// isHeld reports whether an import stays merged from the same exports, because one of its clusters was not read since
// the start and, as far as is known, no longer exports the service.
func (t *term) isHeld(w *work, exports []*services.Export) bool {
	if w.is.imported == nil || isForeign(w.is.imported) {
		return false
	}
	return slices.ContainsFunc(w.is.imported.Status.Clusters, func(c local.ClusterStatus) bool {
		return t.Keeps(c.Cluster) && !slices.ContainsFunc(exports, func(e *services.Export) bool { return e.Cluster == c.Cluster })
	})
}

// winnerOf is the remote cluster that an import follows; empty: none. An import from an older version has no such
// annotation: it followed the oldest export.
func winnerOf(im *local.ServiceImport, exports []*services.Export) string {
	if im == nil || !isOurs(im.Labels) {
		return ""
	}
	if winner := im.Annotations[mcs.AnnotationWinner]; winner != "" || len(exports) == 0 {
		return winner
	}
	return mcs.Precedence{}.Order(exports)[0]
}

// needsRoom reports whether an import needs room: it is new, or neither the cluster that it counted for nor the own
// cluster exports the service now.
func needsRoom(w *work, exports []*services.Export, f mcs.Facts) bool {
	counts := func(e *services.Export) bool { return e.Cluster == f.Winner }
	return w.wanted.Import != nil && !w.wanted.Local && !f.Hold && !slices.ContainsFunc(exports, counts)
}

// count notes for which cluster an existing or new import counts.
func (t *term) count(w *work) {
	switch {
	case w.wanted.Import != nil && !isForeign(w.is.imported):
		t.room.count(w.name, w.wanted.Import.Annotations[mcs.AnnotationWinner])
	default:
		t.room.count(w.name, "")
	}
}

// isForeign reports whether there is an import of another writer.
func isForeign(im *local.ServiceImport) bool { return im != nil && !isOurs(im.Labels) }

// isOurs reports whether this program has written an object with these labels.
func isOurs(labels map[string]string) bool { return labels[mcs.LabelWritten] == mcs.Written }

// IsDerived reports whether a Service is the derived one of an import that this program writes.
func IsDerived(svc *corev1.Service) bool {
	return isOurs(svc.Labels) && svc.Labels[mcs.LabelServiceName] != ""
}
