package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
)

// eventChunk is how many bytes of a watch are gathered before they go to the connection. A slow reader holds this
// much memory.
const eventChunk = 16 << 10

// eventBuffers are the buffers of a watch while it has events to send. An idle watch has none.
type eventBuffers struct {
	enc  *json.Encoder // encodes into data
	data bytes.Buffer  // the event that is being encoded
	out  bytes.Buffer  // events that are not written yet
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

// Events writes Server-Sent Events. Only one goroutine may use it.
type Events struct {
	w     io.Writer
	pool  *BufferPool
	lent  *eventBuffers // nil while there is nothing to write
	wrote time.Time     // when something was last written
}

// NewEvents returns a writer of events to w, with buffers from a pool.
func NewEvents(w io.Writer, pool *BufferPool) *Events {
	return &Events{w: w, pool: pool, wrote: time.Now()}
}

// Quiet returns the time since the last write.
func (o *Events) Quiet() time.Duration { return time.Since(o.wrote) }

// Release returns the buffers to the pool, unless an unusually large object has made them large. Events that are not
// written are lost.
func (o *Events) Release() {
	if b := o.lent; b != nil && b.data.Cap() <= 4*eventChunk && b.out.Cap() <= 4*eventChunk {
		b.data.Reset()
		b.out.Reset()
		o.pool.pool.Put(b)
	}
	o.lent = nil
}

// Put adds an event, and writes when enough bytes are gathered.
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
	if b.data.Len() > 4*eventChunk { // large enough to write at once
		return errors.Join(o.Flush(), o.writeLarge(b))
	}
	b.out.Write(b.data.Bytes()) // ends in a newline
	b.out.WriteByte('\n')
	if b.out.Len() < eventChunk {
		return nil
	}
	return o.Flush()
}

// writeLarge writes the data of an event, and frees its buffer.
func (o *Events) writeLarge(b *eventBuffers) error {
	err := o.write(b.data.Bytes())
	b.data = bytes.Buffer{}
	b.out.WriteByte('\n')
	return errors.Join(err, o.Flush())
}

// Send adds an event and writes everything.
func (o *Events) Send(id, event string, data any) error {
	return errors.Join(o.Put(id, event, data), o.Flush())
}

// KeepAlive writes a comment that causes no event in the client. It moves the position from which the client would
// continue.
func (o *Events) KeepAlive(id string) error {
	return errors.Join(o.Flush(), o.write([]byte(": heartbeat\nid: "+id+"\n\n")))
}

// Flush writes the gathered events.
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

// Streams are the answers without an end. Each has a connection that is taken over from net/http, whose buffers and
// goroutine would cost more than an idle watch.
type Streams struct {
	boundary *boundary.Boundary
	stopping context.Context
	mu       sync.Mutex
	over     bool
	group    sync.WaitGroup
}

// NewStreams returns Streams that end with the context stopping. A panic ends only its own stream.
func NewStreams(stopping context.Context, b *boundary.Boundary) *Streams {
	return &Streams{stopping: stopping, boundary: b}
}

// Close waits for the running streams; no more are started.
func (st *Streams) Close() {
	st.mu.Lock()
	st.over = true
	st.mu.Unlock()
	st.group.Wait()
}

// Answer sends the headers of w and the output of feed, until feed returns. The context of feed ends when the client
// is gone or the server stops. feed continues after Answer has returned; done is called at the end. An error means
// that nothing was written.
func (st *Streams) Answer(w http.ResponseWriter, done func(), feed func(context.Context, io.Writer)) error {
	header := w.Header()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		done()
		return fmt.Errorf("streaming an answer: %w", err)
	}
	header.Set("Connection", "close") // the end of the connection is the end of the answer
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		_ = conn.Close()
		done()
		return nil
	}
	st.group.Go(func() {
		defer done()
		st.feed(conn, header, feed)
	})
	return nil
}

func (st *Streams) feed(conn net.Conn, header http.Header, feed func(context.Context, io.Writer)) {
	ctx, cancel := context.WithCancel(st.stopping)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer conn.Close()
	defer cancel()
	// When the server stops, it does not wait for a client that has stopped reading.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	reader.Go(func() {
		defer cancel()
		for buf := make([]byte, 64); ; { // the client sends nothing more; a read ends when it is gone
			if _, err := conn.Read(buf); err != nil {
				return
			}
		}
	})
	out := deadlined{conn}
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\n") // a successful answer without a length
	_ = header.Write(head)                               // a buffer does not fail
	head.WriteString("\r\n")
	if _, err := out.Write(head.Bytes()); err != nil { // at once: the client waits for the headers
		return
	}
	_ = st.boundary.Run(func() error { feed(ctx, out); return nil }, "client", conn.RemoteAddr()) // the boundary counts the error
}

// WriteTimeout is how long a client may take for each write of an answer.
const WriteTimeout = 30 * time.Second

// deadlined sets a new deadline for each write.
type deadlined struct{ net.Conn }

func (d deadlined) Write(b []byte) (int, error) {
	if err := d.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
		return 0, err
	}
	return d.Conn.Write(b)
}
