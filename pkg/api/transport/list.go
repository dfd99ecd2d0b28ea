package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"

	"github.com/mesh-agent/mesh-agent/internal/safetext"
)

// ListWriter writes the items of a list as JSON, one at a time, so that it never holds all of them. One goroutine uses it.
type ListWriter struct {
	done <-chan struct{} // closed when nobody reads any more
	out  *bufio.Writer   // keeps its first error
	buf  bytes.Buffer    // the item that is being encoded
	enc  *json.Encoder
	n    int // items written
	seen int // items looked at, those that do not match included
	fail error
}

const chunkSize = 64 << 10 // gathered before it goes to the connection

func newItemWriter(ctx context.Context, w io.Writer) *ListWriter {
	l := &ListWriter{done: ctx.Done(), out: bufio.NewWriterSize(w, chunkSize)}
	l.enc = safetext.Encoder(&l.buf)
	return l
}

// NewListWriter begins a list of a revision, with the freshness of its clusters unless that is nil.
func NewListWriter[F any](ctx context.Context, w io.Writer, revision uint64, freshness map[string]F) *ListWriter {
	l := newItemWriter(ctx, w)
	l.write(`{"revision":`, revision)
	if freshness != nil {
		l.write(`,"freshness":`, freshness)
	}
	_, _ = l.out.WriteString(`,"items":[`)
	return l
}

// Item writes one more.
func (l *ListWriter) Item(v any) {
	separator := "\n"
	if l.n > 0 {
		separator = ",\n"
	}
	l.n++
	l.write(separator, v)
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
		panic(http.ErrAbortHandler) // so that nobody takes the list for complete
	}
}

// WriteArray writes items as an array of JSON, which is never held as a whole.
func WriteArray[T any](ctx context.Context, w io.Writer, items iter.Seq[T]) {
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

// Err tells why nobody reads any more. It is cheap enough for every item.
func (l *ListWriter) Err() error {
	if l.seen++; l.fail == nil && l.seen%1024 == 0 {
		select {
		case <-l.done:
			l.fail = context.Canceled
		default:
		}
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
