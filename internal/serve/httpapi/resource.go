package httpapi

import (
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// resource describes one kind of object: how to list the D that the domain
// holds and how to show one as the J of the contract.
type resource[D, J any] struct {
	name    view.Kind // as in the path: "nodes"
	summary string    // what the list holds
	filters []string  // the filters that it has
	// from iterates in the order of the keys, strictly after that of the query; from the
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
	// it; steady leaves out what moves all the time, for a watch. Nil: nothing.
	alone  func(v *view.Snapshot, j *J)
	steady func(j *J)
	// dependsOn names the resource that the filters of a query look at beside this
	// one, empty for none; touched gives what changes of that one may have let in
	// or out. Both are nil when there is never one.
	dependsOn func(q *query) view.Kind
	touched   func(v *view.Snapshot, changed []any) iter.Seq[D]
	// paths are those of a single object, below the list's; one finds it. missing says
	// that it is not there: a format of the parts of its path and of its key.
	paths   []string
	missing string
	one     func(s *Server, v *view.Snapshot, path func(string) string) (D, error)
}

// parts are the names of the wildcards in the path of a single object.
func (res *resource[D, J]) parts() []string {
	return strings.FieldsFunc(res.paths[0], func(c rune) bool { return strings.ContainsRune("/{.}", c) })
}

// key is that of the object at a path.
func (res *resource[D, J]) key(path func(string) string) string {
	return strings.Join(converted(res.parts(), path), "/")
}

// absent says that there is nothing at a path.
func (res *resource[D, J]) absent(path func(string) string) error {
	args := converted(res.parts(), func(part string) any { return path(part) })
	return notFound(res.missing, append(args, res.key(path))...)
}

// inTable takes the objects from a table. byKey makes a query of a key; its error is for
// those who ask for a single object by it.
func inTable[D, J any](res *resource[D, J], table func(v *view.View) statedb.Table[D], byKey func(key string) (statedb.Query[D], error)) *resource[D, J] {
	res.from = func(s *Server, v *view.Snapshot, q *query) (iter.Seq[D], error) {
		if q.after == "" {
			return statedb.ToSeq(table(s.View).All(v.Txn)), nil
		}
		query, err := byKey(q.after)
		if err != nil {
			return nil, errCursor()
		}
		return func(yield func(D) bool) {
			first := true
			for d := range table(s.View).LowerBound(v.Txn, query) {
				sent := first && s.View.Key(res.name, d) == q.after
				first = false
				if !sent && !yield(d) {
					return
				}
			}
		}, nil
	}
	res.one = func(s *Server, v *view.Snapshot, path func(string) string) (d D, err error) {
		query, err := byKey(res.key(path))
		if err != nil {
			return d, err
		}
		d, _, found := table(s.View).Get(v.Txn, query)
		if !found {
			err = res.absent(path)
		}
		return d, err
	}
	return res
}

// inSnapshot takes the objects from a snapshot that was asked for them: they are sorted by name.
func inSnapshot[D, J any](res *resource[D, J], all func(v *view.Snapshot) []D, name func(D) string) *resource[D, J] {
	res.from = func(_ *Server, v *view.Snapshot, q *query) (iter.Seq[D], error) {
		return filtered(slices.Values(all(v)), func(d D) bool { return name(d) > q.after }), nil
	}
	res.one = func(_ *Server, v *view.Snapshot, path func(string) string) (d D, err error) {
		wanted := res.key(path)
		i := slices.IndexFunc(all(v), func(d D) bool { return name(d) == wanted })
		if i < 0 {
			return d, res.absent(path)
		}
		return all(v)[i], nil
	}
	return res
}

func (res *resource[D, J]) routes(s *Server) []route {
	all := []route{{
		path: "/v1/" + string(res.name), id: "list-" + string(res.name),
		summary: res.summary, parameters: append(res.filters, "limit", "cursor"),
		answer: reflect.TypeFor[api.List[J]](), errors: []int{http.StatusBadRequest},
		handle: func(w http.ResponseWriter, r *http.Request) error { return res.list(s, w, r) },
	}}
	for i, path := range res.paths {
		id := "get-" + string(res.name)
		if i > 0 {
			id += "-by-parts"
		}
		all = append(all, route{
			path: "/v1/" + string(res.name) + path, id: id, summary: "One of the " + string(res.name) + ".",
			answer: reflect.TypeFor[J](), errors: []int{http.StatusBadRequest, http.StatusNotFound},
			handle: func(w http.ResponseWriter, r *http.Request) error {
				v := s.View.DatedSnapshot(r.Context(), res.name) // dated for what is not there, too
				d, err := res.one(s, v, r.PathValue)
				if err != nil {
					return withDoubt(err, v, view.Families(res.name))
				}
				return s.large.Write(w, r, d, func() {
					j := res.convert(s, v, d)
					if res.alone != nil {
						res.alone(v, &j)
					}
					writeJSON(w, j)
				})
			},
		})
	}
	return all
}

// passes applies the filters whose answer may change.
func (res *resource[D, J]) passes(s *Server, v *view.Snapshot, q *query, d D) bool {
	return res.match == nil || res.match(s, v, q, d)
}

// chosen reports whether an object passes all filters.
func (res *resource[D, J]) chosen(s *Server, v *view.Snapshot, q *query, d D) bool {
	return res.fixed(q, d) && res.passes(s, v, q, d)
}

func (res *resource[D, J]) list(s *Server, w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(string(res.name), res.filters, r.URL.RawQuery)
	if err != nil {
		return err
	}
	snapshot, families := s.View.Snapshot, view.Families(res.name)
	if len(families) > 0 {
		snapshot = s.View.DatedSnapshot
	}
	v := snapshot(r.Context(), res.name)
	items, err := res.from(s, v, &q)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if res.filter(s, &q).Uses() == "" { // a watch of others begins with the state, whatever the token
		w.Header().Set(api.HeaderToken, s.View.Token(v.Position))
	}
	if r.Method == http.MethodHead {
		return nil
	}
	out := transport.NewListWriter(r.Context(), w, v.Position, toFreshnesses(v.Freshness(families...), s.now()))
	n, last := 0, ""
	for d := range items {
		if out.Err() != nil {
			break
		}
		if !res.chosen(s, v, &q, d) {
			continue
		}
		if q.limit > 0 && n == q.limit {
			out.Close(transport.EncodeCursor(string(res.name), last))
			return nil
		}
		out.Object(s.large, d, func() any { return res.convert(s, v, d) })
		if n++; n == q.limit {
			last = s.View.Key(res.name, d)
		}
	}
	out.Close("")
	return nil
}

// watchable is a resource as a watch sees it.
type watchable interface {
	kind() view.Kind
	filterNames() []string
	filter(s *Server, q *query) view.Filter
	// show converts an object of the domain, without what moves all the time.
	show(s *Server, v *view.Snapshot, object any) any
}

func (res *resource[D, J]) kind() view.Kind       { return res.name }
func (res *resource[D, J]) filterNames() []string { return res.filters }

func (res *resource[D, J]) show(s *Server, v *view.Snapshot, object any) any {
	j := res.convert(s, v, object.(D))
	if res.steady != nil {
		res.steady(&j)
	}
	return j
}

func (res *resource[D, J]) filter(s *Server, q *query) view.Filter { return &filter[D, J]{res, s, q} }

// filter is the query of a watch as a stream asks it.
type filter[D, J any] struct {
	res *resource[D, J]
	s   *Server
	q   *query
}

func (f *filter[D, J]) Named(object any) bool { return f.res.fixed(f.q, object.(D)) }

func (f *filter[D, J]) Passes(v *view.Snapshot, object any) bool {
	return f.res.passes(f.s, v, f.q, object.(D))
}

func (f *filter[D, J]) All(v *view.Snapshot) iter.Seq[any] {
	items, err := f.res.from(f.s, v, f.q)
	if err != nil { // a bad cursor, and a watch has none
		return func(func(any) bool) {}
	}
	return view.Untyped(items)
}

func (f *filter[D, J]) Uses() view.Kind {
	if f.res.dependsOn == nil {
		return ""
	}
	return f.res.dependsOn(f.q)
}

func (f *filter[D, J]) Touched(v *view.Snapshot, changed []any) iter.Seq[any] {
	return view.Untyped(f.res.touched(v, changed))
}
