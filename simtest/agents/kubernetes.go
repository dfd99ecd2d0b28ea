package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/kube/kubewrite"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// API is what an agent uses of the Kubernetes API server of its cluster: it writes EndpointSlices, and is informed about
// Services and EndpointSlices. The objects are those of [Cluster.Source].
type API struct {
	source *local.Cluster

	mu    sync.Mutex
	fault func(ctx context.Context, request func() error) error // guarded by mu; nil: each request succeeds
	wrote func(service string)                                  // guarded by mu; nil: no observer
	made  int                                                   // guarded by mu; the number of created objects
}

// SetFault sets a function that makes each request, or does not.
func (a *API) SetFault(f func(ctx context.Context, request func() error) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = f
}

// SetObserver sets a function that is called after each write of a slice, with the name of its Service. It must not write.
func (a *API) SetObserver(f func(service string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrote = f
}

// observe tells the observer about a slice.
func (a *API) observe(slice *discoveryv1.EndpointSlice) {
	if a.wrote != nil {
		a.wrote(slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName])
	}
}

// request makes a request with the faults that there are now.
func (a *API) request(ctx context.Context, do func() error) error {
	a.mu.Lock()
	f := a.fault
	a.mu.Unlock()
	if f == nil {
		return do()
	}
	return f(ctx, do)
}

// Apply implements endpointslices.Writer, as the only writer of the fields of an object.
func (a *API) Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	slice := new(discoveryv1.EndpointSlice)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, slice); err != nil {
		return nil, err
	}
	err := a.request(ctx, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		old, is := a.source.EndpointSlices.Get(a.source.ReadTxn(), local.Name(slice))
		switch {
		case slice.UID != "" && (!is || old.UID != slice.UID):
			return apierrors.NewConflict(r.GroupResource(), slice.Name, errors.New("the UID is another one"))
		case is:
			slice.UID = old.UID
		default:
			a.made++
			slice.UID = types.UID(fmt.Sprint("slice-", a.made))
		}
		a.source.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: local.Name(slice), Old: old, New: slice}})
		a.collect()
		a.observe(slice)
		return nil
	})
	return kubewrite.Object(slice), err
}

// Delete implements endpointslices.Writer.
func (a *API) Delete(ctx context.Context, _ schema.GroupVersionResource, namespace, name string, uid types.UID) (deleted bool, err error) {
	err = a.request(ctx, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		old, is := a.source.EndpointSlices.Get(a.source.ReadTxn(), namespace+"/"+name)
		if deleted = is && old.UID == uid; deleted {
			a.source.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: local.Name(old), Old: old}})
			a.observe(old)
		}
		return nil
	})
	return deleted, err
}

// AtOnce implements endpointslices.Writer.
func (a *API) AtOnce() int { return kubewrite.DefaultAtOnce }

// Collect deletes the slices whose owner no longer exists, as the garbage collector of Kubernetes does.
func (a *API) Collect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.collect()
}

func (a *API) collect() {
	txn := a.source.ReadTxn()
	owners := make(map[types.UID]bool)
	for svc := range a.source.Services.Table().All(txn) {
		owners[svc.UID] = true
	}
	var gone []store.Change[discoveryv1.EndpointSlice]
	for slice := range a.source.EndpointSlices.Table().All(txn) {
		if slices.ContainsFunc(slice.OwnerReferences, func(o metav1.OwnerReference) bool { return !owners[o.UID] }) {
			gone = append(gone, store.Change[discoveryv1.EndpointSlice]{Name: local.Name(slice), Old: slice})
		}
	}
	a.source.EndpointSlices.Apply(gone)
	for _, one := range gone {
		a.observe((*discoveryv1.EndpointSlice)(one.Old))
	}
}

// inform keeps the objects of an agent equal to those of the API server until ctx ends.
func (a *API) inform(to *local.Cluster) func(context.Context) error {
	return func(ctx context.Context) error {
		return waiting.Together(ctx, follows(a, a.source.Services, to.Services), follows(a, a.source.EndpointSlices, to.EndpointSlices))
	}
}

// informAgain is the pause after a request of an informer that failed.
const informAgain = time.Second

func follows[T any, P local.Object[T]](a *API, from, to *local.Objects[T, P]) func(context.Context) error {
	return func(ctx context.Context) error {
		f, err := from.Follow()
		if err != nil {
			return err
		}
		defer f.Close()
		if err := from.WaitListed(ctx); err != nil {
			return err
		}
		for {
			var changes []store.Change[T]
			err := a.request(ctx, func() error {
				f.Drain(func(o P, deleted bool) {
					ch := store.Change[T]{Name: local.Name(o), New: (*T)(o)}
					if deleted {
						ch.Old, ch.New = ch.New, nil
					}
					changes = append(changes, ch)
				})
				return nil
			})
			to.Apply(changes)
			if err != nil {
				if err := waiting.Sleep(ctx, informAgain); err != nil {
					return err
				}
				continue
			}
			to.Listed()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-f.Changed():
			}
		}
	}
}
