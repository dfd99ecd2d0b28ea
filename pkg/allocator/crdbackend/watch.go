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

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
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
	logger := logr.Discard() // failures are returned
	ctx = klog.NewContext(ctx, logger)
	cached := &mappingStore{Backend: b, handler: handler, known: make(map[uint64]allocator.Key)}
	r := cache.NewReflectorWithOptions(lw, nil, cached, cache.ReflectorOptions{
		Name: identityResource().Resource, TypeDescription: identityResource().Resource, Logger: &logger,
	})
	failing := false
	for {
		err := r.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !failing {
			b.Log.Warn("Cannot watch the CiliumIdentities of the Kubernetes API, trying again", "error", err)
		}
		failing = err != nil
		if err := waiting.Sleep(ctx, againAfter); err != nil {
			return err
		}
	}
}

// plain hides the reason of a missing answer. A reflector would retry some of these errors by itself, with pauses
// that do not end with the context.
func plain(err error) error {
	if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) {
		return err
	}
	return errors.New(err.Error())
}

// mappingStore is the store that a reflector writes to, from one goroutine. It reports differences to the handler.
type mappingStore struct {
	*Backend
	handler allocator.CacheMutations
	known   map[uint64]allocator.Key
	listed  bool
}

// Add is called for a new object.
func (s *mappingStore) Add(o any) error { return s.Update(o) }

// Update is called for an object that may be new or changed. An object that cannot be read counts as deleted.
func (s *mappingStore) Update(o any) error {
	one, is := o.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	id, key, err := s.read(one)
	if err != nil {
		s.Log.Warn("Skipped a CiliumIdentity that cannot be decoded", "error", err)
		if id != allocator.NoID {
			s.gone(id)
		}
		return nil
	}
	if before := s.known[id]; before == nil || before.GetKey() != key.GetKey() {
		s.known[id] = key
		s.handler.OnUpsert(id, key)
	}
	return nil
}

// Delete is called for a deleted object.
func (s *mappingStore) Delete(o any) error {
	if one, is := o.(*unstructured.Unstructured); is {
		if id, _, _ := s.read(one); id != allocator.NoID {
			s.gone(id)
		}
	}
	return nil
}

func (s *mappingStore) gone(id uint64) {
	if key, was := s.known[id]; was {
		delete(s.known, id)
		s.handler.OnDelete(id, key)
	}
}

// Replace is called with a complete list.
func (s *mappingStore) Replace(list []any, _ string) error {
	there := make(map[uint64]bool, len(list))
	for _, o := range list {
		if one, is := o.(*unstructured.Unstructured); is {
			id, _, _ := s.read(one)
			there[id] = true
		}
		_ = s.Update(o) // never fails
	}
	for id := range s.known {
		if !there[id] {
			s.gone(id)
		}
	}
	if !s.listed {
		s.listed = true
		s.handler.OnListDone()
	}
	return nil
}

// Resync is never called, because the reflector has no resync period.
func (s *mappingStore) Resync() error { return nil }
