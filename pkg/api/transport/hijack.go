package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
)

// Streams are the answers that have no end, each on a connection that was taken
// over from net/http: its buffers and its goroutine would cost more than an idle
// watch does.
type Streams struct {
	log      *slog.Logger
	stopping context.Context
	mu       sync.Mutex
	over     bool
	group    sync.WaitGroup
}

// NewStreams returns the place of streams that end with a context.
func NewStreams(stopping context.Context, log *slog.Logger) *Streams {
	return &Streams{stopping: stopping, log: log}
}

// Close waits for those that run; no more are started.
func (st *Streams) Close() {
	st.mu.Lock()
	st.over = true
	st.mu.Unlock()
	st.group.Wait()
}

// Answer answers with the headers of w and whatever feed writes, until feed
// returns. The context of feed ends when the client is gone or the server stops;
// feed runs on after Answer has returned, and done is called in the end. An error
// means that nothing was written.
func (st *Streams) Answer(w http.ResponseWriter, done func(), feed func(context.Context, io.Writer)) error {
	header := w.Header()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		done()
		return fmt.Errorf("streaming an answer: %w", err)
	}
	header.Set("Connection", "close") // its end is the answer's
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

// feed serves one stream to its end.
func (st *Streams) feed(conn net.Conn, header http.Header, feed func(context.Context, io.Writer)) {
	ctx, cancel := context.WithCancel(st.stopping)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer conn.Close()
	defer cancel()
	defer st.recover()
	// A client that takes nothing any more is not waited for when the server stops.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	reader.Go(func() {
		defer cancel()
		for buf := make([]byte, 64); ; { // the client has nothing more to say than that it goes
			if _, err := conn.Read(buf); err != nil {
				return
			}
		}
	})
	out := deadlined{conn}
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\n") // of a good answer without a length
	_ = header.Write(head)                               // the buffer takes everything
	head.WriteString("\r\n")
	if _, err := out.Write(head.Bytes()); err != nil { // at once: the client waits for the headers
		return
	}
	feed(ctx, out)
}

func (st *Streams) recover() {
	if cause := recover(); cause != nil {
		st.log.Error("A watch panicked", "error", cause, "stack", string(debug.Stack()))
	}
}

// WriteTimeout is how long a client may take for each piece of an answer.
const WriteTimeout = 30 * time.Second

// deadlined gives the client a new deadline for each piece.
type deadlined struct{ net.Conn }

func (d deadlined) Write(b []byte) (int, error) {
	if err := d.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
		return 0, err
	}
	return d.Conn.Write(b)
}
