package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// common is what followers have in common.
type common struct {
	health    *health
	lookAgain time.Duration
	lookTwice time.Duration
	quiet     time.Duration
	log       *slog.Logger
}

// follower keeps the objects of one kind as the API server has them.
type follower struct {
	common
	requests requests
	store    objectStore
	kind     *kindHealth
	missed   atomic.Int32              // how many looks in a row found no definition
	open     atomic.Pointer[openWatch] // the watch; nil while there is none, or none is known
}

// objectStore is [batches] of any kind.
type objectStore interface {
	cache.TransformingStore
	run(ctx context.Context)
	confirm(until time.Time)
	count() int
}

func newFollower[T any, P local.Object[T]](c common, into *local.Objects[T, P], read func(any) (P, error), r requests) *follower {
	c.log = c.log.With("resource", r.resource)
	kind := c.health.add(r.resource)
	heard := func(at time.Time) { c.health.heard(kind, at) }
	return &follower{common: c, requests: r, store: newBatches(into, read, heard, c.log), kind: kind}
}

// run follows the kind until ctx ends.
func (f *follower) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { f.store.run(ctx) })
	for {
		f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := f.lookTwice
		if f.missed.Load() > 1 || f.store.count() == 0 {
			f.withdraw()
			pause = f.lookAgain
		}
		if waiting.Sleep(ctx, wait.Jitter(pause, 0.2)) != nil {
			return
		}
	}
}

// withdraw is for a kind that does not exist: its list is complete and empty.
func (f *follower) withdraw() {
	if n := f.store.count(); n > 0 {
		f.log.Info("The definition of a kind of objects was deleted, and all its objects", "objects", n)
	}
	_ = f.store.Replace(nil, "") // never fails
	f.health.succeeded(f.kind)
}

// follow lists and watches until ctx ends or the kind has no definition.
func (f *follower) follow(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return ask(ctx, f, end, false, func() (runtime.Object, error) { return f.requests.list(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			f.open.Store(nil)
			resumed := o.SendInitialEvents == nil
			w, err := ask(ctx, f, end, resumed, func() (watch.Interface, error) { return f.requests.watch(ctx, o) })
			if open := new(openWatch); err == nil {
				if !resumed {
					open.since = time.Now()
				}
				f.open.Store(open)
			}
			return w, err
		},
	}
	logger := clientLogger(f.log)
	r := cache.NewReflectorWithOptions(lw, nil, f.store, cache.ReflectorOptions{
		Name: f.requests.resource, TypeDescription: f.requests.resource, Logger: &logger, Backoff: reflectorPauses(),
	})
	ctx = klog.NewContext(ctx, logger)
	for pause := newPause(); ctx.Err() == nil; {
		began := time.Now()
		err := r.ListAndWatchWithContext(ctx)
		f.open.Store(nil)
		f.log.Debug("A watch has ended, listing the kind again", "error", err)
		if time.Since(began) > time.Minute {
			pause.Reset()
		}
		_ = waiting.Sleep(ctx, pause.NextBackOff())
	}
}

// reflectorPauses are the pauses of a reflector after a watch that the API server ends because there are too many
// requests. Some of them do not end with ctx, and by default they become a minute long: the agent would not stop in time.
func reflectorPauses() *wait.Backoff {
	return &wait.Backoff{Duration: 400 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 4, Cap: 2 * time.Second}
}

// newPause makes the pauses between requests that fail.
func newPause() *backoff.ExponentialBackOff {
	pause := waiting.Pauses(100*time.Millisecond, 5*time.Second)
	return pause
}

// ask makes a request, and repeats it while there is no answer or a refusal that may be temporary: the pauses of a
// reflector do not end with ctx, and the failure would not be reported. It calls end for a kind that has no definition.
// A watch that was to be resumed when the server did not answer is reported as expired, so that a list follows: the
// server may now have older data.
func ask[R any](ctx context.Context, f *follower, end func(), resumed bool, request func() (R, error)) (R, error) {
	pause := newPause()
	for {
		r, err := request()
		switch {
		case err == nil:
			f.missed.Store(0)
			f.health.succeeded(f.kind)
			return r, nil
		case ctx.Err() != nil:
			return r, ctx.Err()
		case f.requests.custom && apierrors.IsNotFound(err):
			f.missed.Add(1)
			end()
			return r, err
		case forReflector(err):
			return r, err
		}
		f.health.failed(f.kind, err)
		if resumed && !isRefusal(err) {
			return r, apierrors.NewResourceExpired("the server was away: " + err.Error())
		}
		if err := waiting.Sleep(ctx, pause.NextBackOff()); err != nil {
			return r, err // not that of the request, after which a reflector may pause
		}
	}
}

// forReflector reports whether a reflector asks otherwise after this error: for
// another revision, or for a list where an older API server streams none.
func forReflector(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// isRefusal reports whether the API server would not, rather than could not.
func isRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.Status().Code < http.StatusInternalServerError
}
