package kubernetes

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// maxPending bounds the objects that wait to be applied; above it the reflector waits, and with it the API server.
const maxPending = 1000

// batches is what a reflector writes to: it changes the table where the objects differ. Events come
// one by one; those that come while others are being applied are applied together.
type batches[T any, P local.Object[T]] struct {
	objects *local.Objects[T, P]
	read    func(any) (P, error) // of a fresh object, which it may change
	log     *slog.Logger
	heard   func(until time.Time) // every event until then is in the table
	wake    waiting.Signal        // something is pending

	applying sync.Mutex // held while the table changes; before mu

	mu      sync.Mutex   // guards everything below
	pending map[string]P // objects to apply, by name; nil: deleted
	said    time.Time    // when the last event or bookmark came
}

func newBatches[T any, P local.Object[T]](objects *local.Objects[T, P], read func(any) (P, error), heard func(time.Time), log *slog.Logger) *batches[T, P] {
	return &batches[T, P]{
		objects: objects, read: read, log: log, heard: heard,
		wake: waiting.NewSignal(), pending: make(map[string]P),
	}
}

// run applies the pending objects as they come, until ctx ends.
func (b *batches[T, P]) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			b.flush()
		}
	}
}

// Add is called for an object that is new.
func (b *batches[T, P]) Add(o any) error { return b.Update(o) }

// Update is called for an object that may be new or other than before. An object that cannot be read is skipped with a
// warning; its previous state stays until the next list.
func (b *batches[T, P]) Update(o any) error {
	one, err := b.read(o)
	if err != nil {
		b.refuse(o, err)
		return nil
	}
	b.note(func(pending map[string]P) { pending[local.Name(one)] = one })
	return nil
}

// Delete is called for an object that is gone.
func (b *batches[T, P]) Delete(o any) error {
	if one, ok := o.(metav1.Object); ok {
		b.note(func(pending map[string]P) { pending[local.Name(one)] = nil })
	}
	return nil
}

// Bookmark is called when nothing changed for a while.
func (b *batches[T, P]) Bookmark(string) error {
	b.note(func(map[string]P) {})
	return nil
}

// Resync is never called: nothing has to be said twice.
func (b *batches[T, P]) Resync() error { return nil }

// Transformer reads objects while a list comes in, so that fields without a reader need not be kept until its end.
func (b *batches[T, P]) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if one, err := b.read(o); err == nil {
			return one, nil
		}
		return o, nil // refused in Replace
	}
}

func (b *batches[T, P]) refuse(o any, err error) {
	name := ""
	if one, ok := o.(metav1.Object); ok {
		name = local.Name(one)
	}
	b.log.Warn("Cannot decode an object of the Kubernetes API", "name", name, "error", err)
}

// note changes the pending objects, and applies them when there are too many.
func (b *batches[T, P]) note(change func(pending map[string]P)) {
	b.mu.Lock()
	change(b.pending)
	b.said = time.Now()
	full := len(b.pending) >= maxPending
	b.mu.Unlock()
	if full {
		b.flush()
		return
	}
	b.wake.Notify()
}

// confirm notes that until then nothing had changed except the pending objects, and applies those.
func (b *batches[T, P]) confirm(until time.Time) {
	b.mu.Lock()
	if until.After(b.said) {
		b.said = until
	}
	b.mu.Unlock()
	b.flush()
}

// flush applies the pending objects.
func (b *batches[T, P]) flush() {
	b.applying.Lock()
	defer b.applying.Unlock()
	pending, said := b.take()
	b.objects.Apply(b.differences(pending))
	b.heard(said)
}

func (b *batches[T, P]) take() (pending map[string]P, said time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pending, b.pending = b.pending, make(map[string]P)
	return pending, b.said
}

// differences are the changes from the existing to the wanted objects; nil means that none is wanted.
func (b *batches[T, P]) differences(wanted map[string]P) (changes []store.Change[T]) {
	held := b.objects.Snapshot()
	for name, o := range wanted {
		old, found := b.objects.Get(held, name)
		switch {
		case o == nil && !found, o != nil && found && equality.Semantic.DeepEqual(old, o):
		default:
			changes = append(changes, store.Change[T]{Name: name, Old: old, New: o})
		}
	}
	return changes
}

// Replace is called with a complete list.
func (b *batches[T, P]) Replace(list []any, _ string) error {
	said := time.Now()
	b.applying.Lock()
	defer b.applying.Unlock()
	b.take() // from before the list
	wanted := make(map[string]P, len(list))
	for held := range b.objects.Table().All(b.objects.Snapshot()) {
		wanted[local.Name(held)] = nil // unless it is in the list
	}
	for _, o := range list {
		if one, err := b.read(o); err != nil {
			b.refuse(o, err)
		} else {
			wanted[local.Name(one)] = one
		}
	}
	b.objects.Apply(b.differences(wanted))
	b.objects.Listed()
	b.heard(said)
	return nil
}

// count is the number of objects.
func (b *batches[T, P]) count() int { return b.objects.Len() }
