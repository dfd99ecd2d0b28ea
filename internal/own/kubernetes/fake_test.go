package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// api is an API server with one kind that has a definition, for tests that depend on time. test/kubernetes uses a real
// one.
type api struct {
	mu      sync.Mutex // guards everything below
	refuses error      // what every request fails with
	lists   bool       // it is too old to stream lists
	objects map[string]string
	watches []*watch.RaceFreeFakeWatcher
	asked   int // requests

	unwatched bool // watches are refused
	crowded   bool // watches end with an error, since there are too many requests
}

func identity(name, label string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity",
		"metadata":        map[string]any{"name": name, "resourceVersion": "1"},
		"security-labels": map[string]any{"l": label},
	}}
}

// answers sets what every request fails with from now on, and breaks watches.
func (a *api) answers(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuses = err
	a.breakWatches()
}

// breakWatches ends all watches. mu is held.
func (a *api) breakWatches() {
	for _, w := range a.watches {
		w.Stop()
	}
	a.watches = nil
}

// refuse sets what every request fails with from now on; watches stay open.
func (a *api) refuse(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuses = err
}

// bookmark tells those who watch that nothing has changed.
func (a *api) bookmark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watches {
		w.Action(watch.Bookmark, identity("", ""))
	}
}

// set changes an object, and tells those who watch.
func (a *api) set(name, label string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[name] = label
	for _, w := range a.watches {
		w.Modify(identity(name, label))
	}
}

// lose deletes an object without an event.
func (a *api) lose(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, name)
}

// count is the number of requests.
func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func (a *api) requests() requests {
	return requests{resource: "ciliumidentities", custom: true, list: a.list, watch: a.watch}
}

// ask is called with mu held for each request, to count it and to refuse it.
func (a *api) ask(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.asked++
	return a.refuses
}

func (a *api) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.ask(ctx); err != nil {
		return nil, err
	}
	all := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}}
	for name, label := range a.objects {
		all.Items = append(all.Items, *identity(name, label))
	}
	return all, nil
}

func (a *api) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.ask(ctx); err != nil {
		return nil, err
	}
	if a.unwatched {
		return nil, errNoAnswer
	}
	w := watch.NewRaceFreeFake()
	if a.crowded {
		status := apierrors.NewTooManyRequests("storage is (re)initializing", 1).Status()
		w.Error(&status)
		return w, nil
	}
	if o.SendInitialEvents != nil {
		if a.lists {
			return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		}
		for name, label := range a.objects {
			w.Add(identity(name, label))
		}
		end := identity("", "")
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.Action(watch.Bookmark, end)
	}
	a.watches = append(a.watches, w)
	return w, nil
}

// following is a follower of an api, in a bubble of time.
type following struct {
	*follower
	api     *api
	objects *local.Objects[local.CiliumIdentity, *local.CiliumIdentity]
	stop    func() // and wait for its end

	mu      sync.Mutex // guards everything below
	reports []string
}

// reported are the reports so far.
func (f *following) reported() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reports)
}

func newFollowing(t *testing.T, a *api) *following {
	f := &following{api: a, objects: tables(t).CiliumIdentities}
	log := slog.New(slog.DiscardHandler)
	h := &health{log: log, report: func(err error) {
		text := "well"
		if err != nil {
			text = err.Error()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reports = append(f.reports, text)
	}}
	f.follower = newFollower(common{h, time.Minute, 10 * time.Second, quiet, log}, f.objects, custom[local.CiliumIdentity], a.requests())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { f.confirm(ctx) })
		f.run(ctx)
	}()
	f.stop = func() { cancel(); <-ended }
	return f
}

// age is the age of the kind's objects.
func (f *following) age() time.Duration { return time.Since(f.health.heardAt(f.kind)) }

// after is what the table has once this time has passed.
func (f *following) after(d time.Duration) map[string]string {
	<-time.After(d)
	synctest.Wait()
	shown := map[string]string{}
	for o := range f.objects.Table().All(f.objects.Snapshot()) {
		shown[o.Name] = o.SecurityLabels["l"]
	}
	return shown
}

func (f *following) expect(t *testing.T, when string, d time.Duration, want map[string]string) {
	t.Helper()
	if got := f.after(d); !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v", when, got, want)
	}
}

// status is how far the kind is known.
func (f *following) status() (s kindHealth, listed bool) {
	f.health.mu.Lock()
	defer f.health.mu.Unlock()
	listed, _ = f.objects.Table().Initialized(f.objects.Snapshot())
	return *f.kind, listed
}

var (
	errUndefined = apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{Resource: "ciliumidentities"}, "", "", 0, true)
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "ciliumidentities"}, "", errors.New("no rule"))
)
