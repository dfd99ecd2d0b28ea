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
	name    view.Kind // the name in the path, such as "nodes"
	summary string    // what the list holds
	filters []string  // the filters that it has
	// from iterates in the order of the keys, strictly after the key of the query; from the start when that key is
	// empty. A key that is invalid for the resource is an error. from may use the query to leave out objects that
	// match would refuse.
	from func(s *Server, v *view.Snapshot, q *query) (iter.Seq[D], error)
	// fixed applies the filters of an object's name: an object passes them always or never.
	fixed func(q *query, d D) bool
	// match applies the other filters; nil when there are none.
	match   func(s *Server, v *view.Snapshot, q *query, d D) bool
	convert func(s *Server, v *view.Snapshot, d D) J
	// alone adds to a single object the data that a list has only once for all items; steady removes the values that
	// change all the time, for a watch. Nil: no change.
	alone  func(v *view.Snapshot, j *J)
	steady func(j *J)
	// dependsOn returns the resource that the filters of a query need in addition to this one, empty for none; touched
	// returns the objects that changes of that resource may add to the result or remove from it. Both are nil for a
	// resource without these filters.
	dependsOn func(q *query) view.Kind
	touched   func(v *view.Snapshot, changed []any) iter.Seq[D]
	// paths are the paths of a single object, below the list's; one finds it. missing is the message that it does not
	// exist: a format for the parts of its path and for its key.
	paths   []string
	missing string
	one     func(s *Server, v *view.Snapshot, path func(string) string) (D, error)
}

// parts returns the names of the wildcards in the path of a single object.
func (res *resource[D, J]) parts() []string {
	return strings.FieldsFunc(res.paths[0], func(c rune) bool { return strings.ContainsRune("/{.}", c) })
}

// key returns the key of the object at a path.
func (res *resource[D, J]) key(path func(string) string) string {
	return strings.Join(converted(res.parts(), path), "/")
}

// absent returns the error that there is no object at a path.
func (res *resource[D, J]) absent(path func(string) string) error {
	args := converted(res.parts(), func(part string) any { return path(part) })
	return notFound(res.missing, append(args, res.key(path))...)
}

// inTable reads the objects from a table. byKey makes a query of a key; its error is the answer to a request for a
// single object.
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

// inSnapshot reads the objects from a snapshot that includes them: they are sorted by name.
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
				v := s.View.DatedSnapshot(r.Context(), res.name) // dated, because an error needs the dates, too
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

// passes applies the filters whose result may change.
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
	if res.filter(s, &q).DependsOn() == "" { // with such filters, a watch always begins with the state
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

// watchable is the part of a resource that a watch needs.
type watchable interface {
	kind() view.Kind
	filterNames() []string
	filter(s *Server, q *query) view.Filter
	// show converts an object of the domain, without the values that change all the time.
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

// filter implements [view.Filter] for the query of a watch.
type filter[D, J any] struct {
	res *resource[D, J]
	s   *Server
	q   *query
}

func (f *filter[D, J]) MatchesName(object any) bool { return f.res.fixed(f.q, object.(D)) }

func (f *filter[D, J]) Matches(v *view.Snapshot, object any) bool {
	return f.res.passes(f.s, v, f.q, object.(D))
}

func (f *filter[D, J]) All(v *view.Snapshot) iter.Seq[any] {
	items, err := f.res.from(f.s, v, f.q)
	if err != nil { // an invalid cursor; a watch has no cursor
		return func(func(any) bool) {}
	}
	return view.Untyped(items)
}

func (f *filter[D, J]) DependsOn() view.Kind {
	if f.res.dependsOn == nil {
		return ""
	}
	return f.res.dependsOn(f.q)
}

func (f *filter[D, J]) Affected(v *view.Snapshot, changed []any) iter.Seq[any] {
	return view.Untyped(f.res.touched(v, changed))
}
