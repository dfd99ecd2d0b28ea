package endpointslices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/simtest/reconciletest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// world is the tables, an API server that applies all writes to these tables, and the parameters of a controller.
// test/kubernetes uses a real API server.
type world struct {
	*reconciletest.World
	db       *statedb.DB
	cluster  *local.Cluster
	services *services.Services
}

func newWorld(t *testing.T, remotes ...string) *world {
	t.Helper()
	w := &world{World: reconciletest.New(t, remotes...), db: statedb.New()}
	var err error
	w.cluster, err = local.New(w.db)
	must(t, err)
	w.services, err = services.New(w.db)
	must(t, err)
	w.cluster.Listed()
	return w
}

func (w *world) Apply(_ context.Context, _ schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	slice := new(discoveryv1.EndpointSlice)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, slice, true); err != nil {
		return nil, err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Writes = append(w.Writes, "apply "+slice.Name)
	if w.Refuse != nil {
		return nil, w.Refuse
	}
	held, found := w.cluster.EndpointSlices.Get(w.cluster.ReadTxn(), local.Name(slice))
	switch {
	case slice.UID != "" && (!found || held.UID != slice.UID):
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "endpointslices"}, slice.Name, errors.New("uid mismatch"))
	case found:
		slice.UID = held.UID
	default:
		w.Made++
		slice.UID = types.UID(fmt.Sprint("made-", w.Made))
	}
	slice.OwnerReferences = nil // as the source strips it
	w.cluster.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: local.Name(slice), New: slice}})
	return o, nil
}

func (w *world) Delete(_ context.Context, _ schema.GroupVersionResource, namespace, name string, uid types.UID) (bool, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Writes = append(w.Writes, "delete "+name)
	if w.Refuse != nil {
		return false, w.Refuse
	}
	held, found := w.cluster.EndpointSlices.Get(w.cluster.ReadTxn(), namespace+"/"+name)
	if !found || held.UID != uid {
		return false, nil
	}
	w.cluster.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: namespace + "/" + name, Old: held}})
	return true, nil
}

// run runs a controller until the function that it returns is called.
func (w *world) run(change ...func(*Params)) (stop func()) {
	w.T.Helper()
	p := Params{
		DB: w.db, Cluster: w.cluster, Services: w.services, Writer: w, BatchPeriod: time.Millisecond,
		Ready: w.IsReady, Remotes: w.All, Report: w.Report,
	}
	for _, c := range change {
		c(&p)
	}
	return w.Run(New(p).Run)
}

// own puts Services of the own cluster into both tables.
func (w *world) own(all ...*corev1.Service) {
	for _, svc := range all {
		w.cluster.Services.Apply([]store.Change[corev1.Service]{{Name: local.Name(svc), New: svc}})
		w.parts(ownPart(svc.Name, ""))
	}
}

func (w *world) parts(all ...*services.Service) {
	var changes []store.Change[services.Service]
	for _, p := range all {
		changes = append(changes, store.Change[services.Service]{Name: p.FullName(), New: p})
	}
	w.services.Apply(changes)
}

func (w *world) withdraw(all ...*services.Service) {
	var changes []store.Change[services.Service]
	for _, p := range all {
		changes = append(changes, store.Change[services.Service]{Name: p.FullName(), Old: p})
	}
	w.services.Apply(changes)
}

func (w *world) text() (lines []string) {
	for slice := range w.cluster.EndpointSlices.Table().All(w.db.ReadTxn()) {
		if IsOurs(slice) {
			lines = append(lines, slice.Labels[discoveryv1.LabelServiceName]+": "+textOf(slice))
		}
	}
	slices.Sort(lines)
	return lines
}

func (w *world) until(what string, want ...string) {
	w.T.Helper()
	waittest.Until(w.T, what, func() bool { return slices.Equal(w.text(), want) }, func() string { return fmt.Sprintf("%q; %s", w.text(), w.Wrong()) })
}

// idle waits until a change that comes after everything before was seen.
func (w *world) idle() {
	w.T.Helper()
	svc := serviceOf("last")
	w.own(svc)
	w.Set(func() { w.Remotes = append(w.Remotes, reconcile.Remote{Name: "last", Read: true}) })
	w.parts(remotePart("last", "last", backend("10.250.0.1", http(80))))
	waittest.Until(w.T, "the last one is there", func() bool {
		return slices.ContainsFunc(w.text(), func(line string) bool { return strings.HasPrefix(line, "last: ") })
	}, w.Wrong)
}
