package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// sseWriter writes Server-Sent Events.
type sseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	enc     *json.Encoder
	data    bytes.Buffer // of the event that is being encoded
	buf     bytes.Buffer // events that were not written yet
	wrote   time.Time    // when something was last written
}

// put adds an event, and writes when there is enough.
func (o *sseWriter) put(id, event string, data any) error {
	o.data.Reset()
	if err := o.enc.Encode(data); err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	if id != "" {
		o.buf.WriteString("id: " + id + "\n")
	}
	o.buf.WriteString("event: " + event + "\ndata: ")
	o.buf.Write(o.data.Bytes()) // ends in a newline
	o.buf.WriteByte('\n')
	if o.buf.Len() < chunkSize {
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
	o.buf.WriteString(": heartbeat\nid: " + id + "\n\n")
	return o.flush()
}

func (o *sseWriter) flush() error {
	if o.buf.Len() == 0 {
		return nil
	}
	_, err := o.w.Write(o.buf.Bytes())
	o.buf.Reset()
	o.wrote = time.Now()
	if err != nil {
		return err
	}
	return o.control.Flush()
}
