package crdbackend

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

// againAfter is the pause after a watch has ended with an error.
const againAfter = time.Second

// ListAndWatch implements [allocator.Backend].
func (b *Backend) ListAndWatch(ctx context.Context, handler allocator.CacheMutations) error {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			all, err := b.identities.List(ctx, o)
			return all, plain(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := b.identities.Watch(ctx, o)
			return w, plain(err)
		},
	}
	logger := logr.Discard() // what fails is returned
	ctx = klog.NewContext(ctx, logger)
	told := &telling{Backend: b, handler: handler, known: make(map[uint64]allocator.Key)}
	r := cache.NewReflectorWithOptions(lw, nil, told, cache.ReflectorOptions{
		Name: identityResource().Resource, TypeDescription: identityResource().Resource, Logger: &logger,
	})
	failing := false
	for {
		err := r.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !failing {
			b.Log.Warn("The CiliumIdentities of the Kubernetes API cannot be followed, trying again", "error", err)
		}
		failing = err != nil
		if err := waiting.Sleep(ctx, againAfter); err != nil {
			return err
		}
	}
}

// plain hides why there was no answer. A reflector would try some of these errors
// again by itself, with pauses that do not end with the context.
func plain(err error) error {
	if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) {
		return err
	}
	return errors.New(err.Error())
}

// telling is what a reflector writes to: it tells the handler what differs. The
// reflector calls it from one goroutine.
type telling struct {
	*Backend
	handler allocator.CacheMutations
	known   map[uint64]allocator.Key
	listed  bool
}

// Add is called for an object that is new.
func (t *telling) Add(o any) error { return t.Update(o) }

// Update is called for an object that may be new or other than before. One that
// cannot be read is as good as none.
func (t *telling) Update(o any) error {
	one, is := o.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	id, key, err := t.read(one)
	if err != nil {
		t.Log.Warn("A CiliumIdentity cannot be read, it is skipped", "error", err)
		if id != allocator.NoID {
			t.gone(id)
		}
		return nil
	}
	if before := t.known[id]; before == nil || before.GetKey() != key.GetKey() {
		t.known[id] = key
		t.handler.OnUpsert(id, key)
	}
	return nil
}

// Delete is called for an object that is gone.
func (t *telling) Delete(o any) error {
	if one, is := o.(*unstructured.Unstructured); is {
		if id, _, _ := t.read(one); id != allocator.NoID {
			t.gone(id)
		}
	}
	return nil
}

func (t *telling) gone(id uint64) {
	if key, was := t.known[id]; was {
		delete(t.known, id)
		t.handler.OnDelete(id, key)
	}
}

// Replace is called with a complete list.
func (t *telling) Replace(list []any, _ string) error {
	there := make(map[uint64]bool, len(list))
	for _, o := range list {
		if one, is := o.(*unstructured.Unstructured); is {
			id, _, _ := t.read(one)
			there[id] = true
		}
		_ = t.Update(o) // never fails
	}
	for id := range t.known {
		if !there[id] {
			t.gone(id)
		}
	}
	if !t.listed {
		t.listed = true
		t.handler.OnListDone()
	}
	return nil
}

// Resync is never called: nothing has to be said twice.
func (t *telling) Resync() error { return nil }
