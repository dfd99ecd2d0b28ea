package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/safetext"
)

// eventChunk is how much of a watch is gathered before it goes to the connection.
// A reader that is slow keeps that much from being freed.
const eventChunk = 16 << 10

// eventBuffers are what a watch works with while it has something to send. An
// idle one has none.
type eventBuffers struct {
	enc  *json.Encoder // into data
	data bytes.Buffer  // the event that is being encoded
	out  bytes.Buffer  // events that were not written yet
}

// BufferPool lends buffers to watches.
type BufferPool struct{ pool sync.Pool }

// NewBufferPool returns an empty pool.
func NewBufferPool() *BufferPool {
	return &BufferPool{sync.Pool{New: func() any {
		b := new(eventBuffers)
		b.enc = safetext.Encoder(&b.data)
		return b
	}}}
}

// Events writes Server-Sent Events. It belongs to one goroutine.
type Events struct {
	w     io.Writer
	pool  *BufferPool
	lent  *eventBuffers // nil while there is nothing to write
	wrote time.Time     // when something was last written
}

// NewEvents writes to w, with buffers that are lent.
func NewEvents(w io.Writer, pool *BufferPool) *Events {
	return &Events{w: w, pool: pool, wrote: time.Now()}
}

// Quiet is how long nothing was written.
func (o *Events) Quiet() time.Duration { return time.Since(o.wrote) }

// Release gives the buffers back, with everything written or of no use any more, unless
// an unusual object has made them large.
func (o *Events) Release() {
	if b := o.lent; b != nil && b.data.Cap() <= 4*eventChunk && b.out.Cap() <= 4*eventChunk {
		b.data.Reset()
		b.out.Reset()
		o.pool.pool.Put(b)
	}
	o.lent = nil
}

// Put adds an event, and writes when there is enough.
func (o *Events) Put(id, event string, data any) error {
	if o.lent == nil {
		o.lent = o.pool.pool.Get().(*eventBuffers)
	}
	b := o.lent
	b.data.Reset()
	if err := b.enc.Encode(data); err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	if id != "" {
		b.out.WriteString("id: " + id + "\n")
	}
	b.out.WriteString("event: " + event + "\ndata: ")
	b.out.Write(b.data.Bytes()) // ends in a newline
	b.out.WriteByte('\n')
	if b.out.Len() < eventChunk {
		return nil
	}
	return o.Flush()
}

// Send puts an event and writes everything.
func (o *Events) Send(id, event string, data any) error {
	return errors.Join(o.Put(id, event, data), o.Flush())
}

// KeepAlive writes a sign of life that no event comes from. It moves the position
// from which the client would go on.
func (o *Events) KeepAlive(id string) error {
	return errors.Join(o.Flush(), o.write([]byte(": heartbeat\nid: "+id+"\n\n")))
}

// Flush writes what was put.
func (o *Events) Flush() error {
	if o.lent == nil || o.lent.out.Len() == 0 {
		return nil
	}
	err := o.write(o.lent.out.Bytes())
	o.lent.out.Reset()
	return err
}

func (o *Events) write(text []byte) error {
	_, err := o.w.Write(text)
	o.wrote = time.Now()
	return err
}
