package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"reflect"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/safetext"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// resource describes one kind of object: how to list the D that the domain
// holds and how to show one as the J of the contract.
type resource[D, J any] struct {
	name    view.Kind // as in the path: "nodes"
	summary string    // what the list holds
	filters []string  // the filters that it has
	// from iterates in the order of the keys, strictly after a key; from the
	// start when that is empty. A key that cannot be one is an error. It may use
	// the query to leave out what match would refuse.
	from func(s *Server, v *view.Snapshot, q *query) (iter.Seq[D], error)
	// fixed applies the filters that are about what an object is called: an
	// object passes them always or never.
	fixed func(q *query, d D) bool
	// match applies the others; nil when there are none.
	match   func(s *Server, v *view.Snapshot, q *query, d D) bool
	convert func(s *Server, v *view.Snapshot, d D) J
	// alone adds to an object that is shown by itself what a list says once for all of
	// it; settle leaves out what moves all the time, for those who are told of changes.
	// Nil: nothing.
	alone  func(v *view.Snapshot, j *J)
	settle func(j *J)
	// leans names the resource that the filters of a query look at beside this
	// one, empty for none; touched gives what changes of that one may have let in
	// or out. Both are nil when there is never one.
	leans   func(q *query) view.Kind
	touched func(v *view.Snapshot, changed []any) iter.Seq[D]
	// one finds the single object of a path with these wildcards.
	onePaths []string
	one      func(s *Server, v *view.Snapshot, path func(string) string) (D, error)
}

// routes returns the routes of the list and of its single objects.
func (res *resource[D, J]) routes(s *Server) []route {
	all := []route{{
		path: "/v1/" + string(res.name), id: "list-" + string(res.name),
		summary: res.summary, parameters: append(res.filters, "limit", "cursor"),
		answer: reflect.TypeFor[List[J]](), errors: []int{http.StatusBadRequest},
		handle: func(w http.ResponseWriter, r *http.Request) error { return res.list(s, w, r) },
	}}
	for i, path := range res.onePaths {
		id := "get-" + string(res.name)
		if i > 0 {
			id += "-by-parts"
		}
		all = append(all, route{
			path: "/v1/" + string(res.name) + path, id: id, summary: "One of the " + string(res.name) + ".",
			answer: reflect.TypeFor[J](), errors: []int{http.StatusBadRequest, http.StatusNotFound},
			handle: func(w http.ResponseWriter, r *http.Request) error {
				v := s.View.DatedSnapshot(r.Context()) // for what is not there, too
				d, err := res.one(s, v, r.PathValue)
				if err != nil {
					return withDoubt(err, v, view.Families(res.name))
				}
				j := res.convert(s, v, d)
				if res.alone != nil {
					res.alone(v, &j)
				}
				writeJSON(w, j)
				return nil
			},
		})
	}
	return all
}

// passes applies the filters whose answer may change.
func (res *resource[D, J]) passes(s *Server, v *view.Snapshot, q *query, d D) bool {
	return res.match == nil || res.match(s, v, q, d)
}

func (res *resource[D, J]) snapshot(s *Server, r *http.Request) *view.Snapshot {
	if len(view.Families(res.name)) > 0 {
		return s.View.DatedSnapshot(r.Context(), res.name)
	}
	return s.View.Snapshot(r.Context(), res.name)
}

// list streams the items that match, up to the limit.
func (res *resource[D, J]) list(s *Server, w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(string(res.name), res.filters, r.URL.RawQuery)
	if err != nil {
		return err
	}
	v := res.snapshot(s, r)
	items, err := res.from(s, v, &q)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodHead {
		return nil
	}
	out := newListWriter(r.Context(), w, v.Position, toFreshnesses(v.Freshness(view.Families(res.name)...), s.now()))
	n, last := 0, ""
	for d := range items {
		if out.err() != nil {
			break
		}
		if !res.fixed(&q, d) || !res.passes(s, v, &q, d) {
			continue
		}
		if q.limit > 0 && n == q.limit {
			out.close(encodeCursor(string(res.name), last))
			return nil
		}
		out.item(res.convert(s, v, d))
		if n++; n == q.limit {
			last = s.View.Key(res.name, d)
		}
	}
	out.close("")
	return nil
}

// listWriter writes a list, one item a line.
type listWriter struct {
	done <-chan struct{} // closed when nobody reads any more
	out  *bufio.Writer
	buf  bytes.Buffer // the item that is being encoded
	enc  *json.Encoder
	n    int // items written
	seen int // items looked at, those that do not match included
	fail error
}

// chunkSize is how much is gathered before it goes to the connection.
const chunkSize = 64 << 10

func newListWriter(ctx context.Context, w io.Writer, revision uint64, freshness map[string]Freshness) *listWriter {
	l := &listWriter{done: ctx.Done(), out: bufio.NewWriterSize(w, chunkSize)}
	l.enc = safetext.Encoder(&l.buf)
	l.print(`{"revision":`)
	l.encode(revision)
	if freshness != nil {
		l.print(`,"freshness":`)
		l.encode(freshness)
	}
	l.print(`,"items":[`)
	return l
}

func (l *listWriter) item(v any) {
	separator := "\n"
	if l.n > 0 {
		separator = ",\n"
	}
	l.n++
	l.print(separator)
	l.encode(v)
}

func (l *listWriter) close(next string) {
	end := "]"
	if l.n > 0 {
		end = "\n]"
	}
	l.print(end + `,"next":`)
	l.encode(next)
	l.print("}\n")
	if err := l.out.Flush(); err != nil {
		l.fail = err
	}
	if l.fail != nil {
		panic(http.ErrAbortHandler) // so that nobody takes the list for complete
	}
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

func (l *listWriter) print(text string) {
	if _, err := l.out.WriteString(text); err != nil {
		l.fail = err
	}
}

func (l *listWriter) encode(v any) {
	l.buf.Reset()
	err := l.enc.Encode(v)
	if err == nil {
		_, err = l.out.Write(bytes.TrimSuffix(l.buf.Bytes(), []byte("\n")))
	}
	if err != nil {
		l.fail = err
	}
}

// after iterates over a table, strictly after the object that has the key of
// this query; from the start when the key is empty.
func after[T any](t statedb.Table[T], txn statedb.ReadTxn, key string, keyOf func(T) string, query func() statedb.Query[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		objects := t.All(txn)
		if key != "" {
			objects = t.LowerBound(txn, query())
		}
		for obj := range objects {
			if keyOf(obj) != key && !yield(obj) {
				return
			}
		}
	}
}
