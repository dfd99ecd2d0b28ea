package transport

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// Large limits the memory that all large objects together take while they are encoded and written: a few clients that
// request the largest services at the same time cannot exhaust the memory of the process. A request beyond the limit
// waits; a client that reads its object slowly then loses its connection. Small objects are not counted. It is safe
// for concurrent use.
type Large struct {
	room    *semaphore.Weighted
	most    int64
	waiting atomic.Int32
}

const (
	smallObject = 256 << 10       // approximate bytes in memory
	timesInText = 4               // memory of an object and its text, as a multiple of the object's
	patience    = 5 * time.Second // how long one reader may take while others wait
)

// Bounds of the limit, in bytes; between them it is [budget.LargeObjects].
const leastLarge, mostLarge = 8 << 20, 256 << 20

// NewLarge returns a limit that suits the memory of the process. An object that is larger than the limit is written
// alone.
func NewLarge() *Large { return newLarge(min(max(budget.LargeObjects.Bytes(), leastLarge), mostLarge)) }

func newLarge(most int64) *Large { return &Large{room: semaphore.NewWeighted(most), most: most} }

// While calls do, which encodes an object and writes it, when there is room. Objects with a method Cost, which
// returns their bytes in memory, may be large. The error is that of do, or that of ctx if do was not called. abort
// must end a write.
func (l *Large) While(ctx context.Context, object any, abort func(), do func() error) error {
	o, has := object.(interface{ Cost() int })
	if !has {
		return do()
	}
	size := int64(o.Cost())
	if size < smallObject {
		return do()
	}
	size = min(size*timesInText, l.most)
	l.waiting.Add(1)
	err := l.room.Acquire(ctx, size)
	l.waiting.Add(-1)
	if err != nil {
		return err
	}
	defer l.room.Release(size)
	defer l.watch(abort)()
	return do()
}

// watch calls abort when a write takes longer than patience while others wait, until stop is called.
func (l *Large) watch(abort func()) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(patience)
		defer again.Stop()
		for {
			select {
			case <-ended:
				return
			case <-again.C:
				if l.waiting.Load() > 0 {
					abort()
				}
			}
		}
	}()
	return func() { close(ended); <-done }
}

// Write is While for an HTTP answer.
func (l *Large) Write(w http.ResponseWriter, r *http.Request, object any, write func()) error {
	return l.While(r.Context(), object, cut(w), func() error { write(); return nil })
}

// cut returns a function that ends the writes of an answer.
func cut(w http.ResponseWriter) (abort func()) {
	return func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) } // a writer without deadlines does not block
}
