package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
)

// ListWriter writes the items of a list as JSON, one at a time, so that it never holds all of them. Only one
// goroutine may use it.
type ListWriter struct {
	ctx  context.Context // ends when the client is gone
	cut  func()          // ends a write
	out  *bufio.Writer   // keeps its first error
	buf  bytes.Buffer    // the item that is being encoded
	enc  *json.Encoder
	n    int // items written
	seen int // items visited, also those that do not match
	fail error
}

const chunkSize = 64 << 10 // bytes to gather before they go to the connection

func newItemWriter(ctx context.Context, w http.ResponseWriter) *ListWriter {
	l := &ListWriter{ctx: ctx, cut: cut(w), out: bufio.NewWriterSize(w, chunkSize)}
	l.enc = safetext.Encoder(&l.buf)
	return l
}

// NewListWriter begins a list of a revision, with the freshness of its clusters unless that is nil.
func NewListWriter[F any](ctx context.Context, w http.ResponseWriter, revision uint64, freshness map[string]F) *ListWriter {
	l := newItemWriter(ctx, w)
	l.write(`{"revision":`, revision)
	if freshness != nil {
		l.write(`,"freshness":`, freshness)
	}
	_, _ = l.out.WriteString(`,"items":[`)
	return l
}

// Item writes one more item.
func (l *ListWriter) Item(v any) {
	separator := "\n"
	if l.n > 0 {
		separator = ",\n"
	}
	l.n++
	l.write(separator, v)
}

// Object writes one more item: show returns its form in the list. It waits for room when the object is large.
func (l *ListWriter) Object(room *Large, object any, show func() any) {
	err := room.While(l.ctx, object, l.cut, func() error {
		l.Item(show())
		return nil
	})
	if err != nil {
		l.fail = err
	}
	if l.buf.Cap() > 4*chunkSize {
		l.buf = bytes.Buffer{}
	}
}

// Close ends the list, with the cursor of the next page. It aborts the answer when an item could not be written.
func (l *ListWriter) Close(next string) {
	end := `],"next":`
	if l.n > 0 {
		end = "\n" + end
	}
	l.write(end, next)
	_, _ = l.out.WriteString("}\n")
	l.flush()
}

func (l *ListWriter) flush() {
	if l.out.Flush() != nil || l.fail != nil {
		panic(http.ErrAbortHandler) // so that the client does not take the list for complete
	}
}

// WriteArray writes items as a JSON array, which is never held as a whole.
func WriteArray[T any](ctx context.Context, w http.ResponseWriter, items iter.Seq[T]) {
	out := newItemWriter(ctx, w)
	_, _ = out.out.WriteString("[")
	for one := range items {
		if out.Err() != nil {
			break
		}
		out.Item(one)
	}
	_, _ = out.out.WriteString("]\n")
	out.flush()
}

// Err returns the reason why writing must stop. It is cheap enough to call for every item.
func (l *ListWriter) Err() error {
	if l.seen++; l.fail == nil && l.seen%1024 == 0 {
		l.fail = l.ctx.Err()
	}
	return l.fail
}

func (l *ListWriter) write(text string, v any) {
	_, _ = l.out.WriteString(text)
	l.buf.Reset()
	err := l.enc.Encode(v)
	if err == nil {
		_, err = l.out.Write(bytes.TrimSuffix(l.buf.Bytes(), []byte("\n")))
	}
	if err != nil {
		l.fail = err
	}
}
