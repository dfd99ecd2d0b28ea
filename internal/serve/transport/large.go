package transport

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// Large bounds what large objects take while they are made into text and written, all together: some clients that
// ask for the largest services at once do not take the memory of the process. Who is beyond the bound waits; a reader
// that takes its object slowly then loses its connection. Small objects are not counted. It is safe for concurrent use.
type Large struct {
	room    *semaphore.Weighted
	most    int64
	waiting atomic.Int32
}

const (
	smallObject = 256 << 10       // bytes in memory, about
	timesInText = 4               // an object and its text together, of what the object takes
	patience    = 5 * time.Second // how long one reader may take while others wait
)

// Bounds of it, in bytes; between them it is [budget.LargeObjects].
const leastLarge, mostLarge = 8 << 20, 256 << 20

// NewLarge returns a bound that suits the memory of the process. An object that takes more has its turn by itself.
func NewLarge() *Large { return newLarge(min(max(budget.LargeObjects.Bytes(), leastLarge), mostLarge)) }

func newLarge(most int64) *Large { return &Large{room: semaphore.NewWeighted(most), most: most} }

// While makes an object into text and writes it, when there is room. Objects with a method Cost, which is their bytes in
// memory, may be large. An error is that of do, or of ctx, without do. Abort makes a write end.
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

// watch aborts what takes too long while others wait, until it is stopped.
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

// Write is While for an answer.
func (l *Large) Write(w http.ResponseWriter, r *http.Request, object any, write func()) error {
	return l.While(r.Context(), object, cut(w), func() error { write(); return nil })
}

// cut ends the writes of an answer.
func cut(w http.ResponseWriter) (abort func()) {
	return func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) } // one that has no deadline waits for nobody
}
