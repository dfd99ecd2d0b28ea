package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
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

// bufferPool lends eventBuffers to watches. The zero value is empty.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) get() *eventBuffers {
	if b, ok := p.pool.Get().(*eventBuffers); ok {
		return b
	}
	b := new(eventBuffers)
	b.enc = newEncoder(&b.data)
	return b
}

// put takes buffers back, unless an unusual object has made them large.
func (p *bufferPool) put(b *eventBuffers) {
	if b.data.Cap() > 4*eventChunk || b.out.Cap() > 4*eventChunk {
		return
	}
	b.data.Reset()
	b.out.Reset()
	p.pool.Put(b)
}

// sseWriter writes Server-Sent Events.
type sseWriter struct {
	w     io.Writer
	pool  *bufferPool
	lent  *eventBuffers // nil while there is nothing to write
	wrote time.Time     // when something was last written
}

// buffers are those of this watch until release.
func (o *sseWriter) buffers() *eventBuffers {
	if o.lent == nil {
		o.lent = o.pool.get()
	}
	return o.lent
}

// release gives the buffers back, with everything written or of no use any more.
func (o *sseWriter) release() {
	if o.lent != nil {
		o.pool.put(o.lent)
		o.lent = nil
	}
}

// put adds an event, and writes when there is enough.
func (o *sseWriter) put(id, event string, data any) error {
	b := o.buffers()
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
	return o.flush()
}

// send puts an event and writes everything.
func (o *sseWriter) send(id, event string, data any) error {
	return errors.Join(o.put(id, event, data), o.flush())
}

// beat writes a sign of life that no event comes from. It moves the position
// from which the client would go on.
func (o *sseWriter) beat(id string) error {
	return errors.Join(o.flush(), o.write([]byte(": heartbeat\nid: "+id+"\n\n")))
}

func (o *sseWriter) flush() error {
	if o.lent == nil || o.lent.out.Len() == 0 {
		return nil
	}
	err := o.write(o.lent.out.Bytes())
	o.lent.out.Reset()
	return err
}

func (o *sseWriter) write(text []byte) error {
	_, err := o.w.Write(text)
	o.wrote = time.Now()
	return err
}
