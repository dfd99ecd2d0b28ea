package endpointslices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

	"github.com/mesh-agent/mesh-agent/internal/reconcile"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// world is the tables, an API server that writes into them what is written to it, and what a controller
// is given. That of test/kubernetes is a real one.
type world struct {
	t        *testing.T
	db       *statedb.DB
	cluster  *local.Cluster
	services *services.Services

	mu      sync.Mutex
	remotes []reconcile.Remote // guarded by mu
	ready   bool               // guarded by mu
	refuse  error              // guarded by mu; of all writes
	writes  []string           // guarded by mu
	made    int                // guarded by mu
	trouble string             // guarded by mu; what was reported last
}

func newWorld(t *testing.T, remotes ...string) *world {
	t.Helper()
	w := &world{t: t, db: statedb.New(), ready: true}
	var err error
	w.cluster, err = local.New(w.db)
	must(t, err)
	w.services, err = services.New(w.db)
	must(t, err)
	for _, name := range remotes {
		w.remotes = append(w.remotes, reconcile.Remote{Name: name, Read: true})
	}
	w.cluster.Listed()
	return w
}

func (w *world) AtOnce() int { return 4 }

func (w *world) Apply(_ context.Context, _ schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	slice := new(discoveryv1.EndpointSlice)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, slice, true); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, "apply "+slice.Name)
	if w.refuse != nil {
		return nil, w.refuse
	}
	held, found := w.cluster.EndpointSlices.Get(w.cluster.ReadTxn(), local.Name(slice))
	switch {
	case slice.UID != "" && (!found || held.UID != slice.UID):
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "endpointslices"}, slice.Name, errors.New("uid mismatch"))
	case found:
		slice.UID = held.UID
	default:
		w.made++
		slice.UID = types.UID(fmt.Sprint("made-", w.made))
	}
	slice.OwnerReferences = nil // as the source strips it
	w.cluster.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: local.Name(slice), New: slice}})
	return o, nil
}

func (w *world) Delete(_ context.Context, _ schema.GroupVersionResource, namespace, name string, uid types.UID) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, "delete "+name)
	if w.refuse != nil {
		return false, w.refuse
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
	w.t.Helper()
	p := Params{
		DB: w.db, Cluster: w.cluster, Services: w.services, Writer: w, BatchPeriod: time.Millisecond,
		Ready:   func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.ready },
		Remotes: func() []reconcile.Remote { w.mu.Lock(); defer w.mu.Unlock(); return slices.Clone(w.remotes) },
		Report: func(task string, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.trouble = ""; err != nil {
				w.trouble = task + ": " + err.Error()
			}
		},
	}
	for _, c := range change {
		c(&p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- New(p).Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				w.t.Errorf("ended with %v", err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) wrong() (text string) {
	w.set(func() { text = w.trouble })
	return text
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
	w.t.Helper()
	waittest.Until(w.t, what, func() bool { return slices.Equal(w.text(), want) }, func() string { return fmt.Sprintf("%q; %s", w.text(), w.wrong()) })
}

// idle waits until a change that comes after everything before was seen.
func (w *world) idle() {
	w.t.Helper()
	svc := serviceOf("last")
	w.own(svc)
	w.set(func() { w.remotes = append(w.remotes, reconcile.Remote{Name: "last", Read: true}) })
	w.parts(remotePart("last", "last", backend("10.250.0.1", http(80))))
	waittest.Until(w.t, "the last one is there", func() bool {
		return slices.ContainsFunc(w.text(), func(line string) bool { return strings.HasPrefix(line, "last: ") })
	}, w.wrong)
}

func (w *world) numWrites() int { return len(w.writesSince(0)) }

func (w *world) writesSince(n int) (all []string) {
	w.set(func() { all = slices.Clone(w.writes[n:]) })
	return all
}
