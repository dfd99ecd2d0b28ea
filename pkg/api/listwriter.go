package api

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

type listWriter struct {
	done <-chan struct{} // closed when nobody reads any more
	out  *bufio.Writer   // keeps its first error
	buf  bytes.Buffer    // the item that is being encoded
	enc  *json.Encoder
	n    int // items written
	seen int // items looked at, those that do not match included
	fail error
}

const chunkSize = 64 << 10 // gathered before it goes to the connection

func newItemWriter(ctx context.Context, w io.Writer) *listWriter {
	l := &listWriter{done: ctx.Done(), out: bufio.NewWriterSize(w, chunkSize)}
	l.enc = safetext.Encoder(&l.buf)
	return l
}

func newListWriter(ctx context.Context, w io.Writer, revision uint64, freshness map[string]Freshness) *listWriter {
	l := newItemWriter(ctx, w)
	l.write(`{"revision":`, revision)
	if freshness != nil {
		l.write(`,"freshness":`, freshness)
	}
	_, _ = l.out.WriteString(`,"items":[`)
	return l
}

func (l *listWriter) item(v any) {
	separator := "\n"
	if l.n > 0 {
		separator = ",\n"
	}
	l.n++
	l.write(separator, v)
}

func (l *listWriter) close(next string) {
	end := `],"next":`
	if l.n > 0 {
		end = "\n" + end
	}
	l.write(end, next)
	_, _ = l.out.WriteString("}\n")
	l.flush()
}

func (l *listWriter) flush() {
	if l.out.Flush() != nil || l.fail != nil {
		panic(http.ErrAbortHandler) // so that nobody takes the list for complete
	}
}

// writeArray writes items as an array of JSON, which is never held as a whole.
func writeArray[T any](ctx context.Context, w io.Writer, items iter.Seq[T]) {
	out := newItemWriter(ctx, w)
	_, _ = out.out.WriteString("[")
	for one := range items {
		if out.err() != nil {
			break
		}
		out.item(one)
	}
	_, _ = out.out.WriteString("]\n")
	out.flush()
}

// err tells why nobody reads any more. It is cheap enough for every item.
func (l *listWriter) err() error {
	if l.seen++; l.fail == nil && l.seen%1024 == 0 {
		select {
		case <-l.done:
			l.fail = context.Canceled
		default:
		}
	}
	return l.fail
}

func (l *listWriter) write(text string, v any) {
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
