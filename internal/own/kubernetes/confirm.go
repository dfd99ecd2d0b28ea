package kubernetes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// An API server sends a bookmark about once a minute where nothing changes, but only if its etcd sends it progress:
// with a short --watch-progress-notify-interval there, as kubeadm sets it. Without that no bookmark comes for a kind
// that does not change, so the source sends the API server a request.
const (
	// quiet is the default of [Options.Quiet].
	quiet = 75 * time.Second
	// delivery is how long an answer that changes nothing waits for what the watch may still bring.
	delivery = 5 * time.Second
)

// openWatch is a watch that the API server has accepted.
type openWatch struct {
	since time.Time // when it was accepted, if it begins with a list; the objects are none of it before that is complete
}

// confirm keeps the time until when a quiet kind is known: when nothing was heard for long, the API
// server answers from its etcd, and the watch that was open before is open still and brings
// nothing, then nothing has changed. It ends with ctx.
func (f *follower) confirm(ctx context.Context) {
	for waiting.Sleep(ctx, wait.Jitter(max(time.Until(f.health.heardAt(f.kind).Add(f.quiet)), delivery), 0.1)) == nil {
		open, began := f.open.Load(), time.Now()
		heard := f.health.heardAt(f.kind)
		if open == nil || heard.Before(open.since) || began.Sub(heard) < f.quiet {
			continue
		}
		// Without a resource version the answer is what etcd has, and not older.
		if _, err := f.requests.list(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			f.log.Debug("Cannot confirm that a kind of objects has no changes", "error", err)
			continue
		}
		if waiting.Sleep(ctx, delivery) == nil && f.open.Load() == open {
			f.store.confirm(began)
		}
	}
}
