package api

import (
	"iter"

	"github.com/mesh-agent/mesh-agent/pkg/view"
)

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

// Named implements [view.Filter].
func (f *filter[D, J]) Named(object any) bool { return f.res.fixed(f.q, object.(D)) }

// Passes implements [view.Filter].
func (f *filter[D, J]) Passes(v *view.Snapshot, object any) bool {
	return f.res.passes(f.s, v, f.q, object.(D))
}

// All implements [view.Filter].
func (f *filter[D, J]) All(v *view.Snapshot) iter.Seq[any] {
	items, err := f.res.from(f.s, v, f.q)
	if err != nil { // a bad cursor, and a watch has none
		return func(func(any) bool) {}
	}
	return view.Untyped(items)
}

// Uses implements [view.Filter].
func (f *filter[D, J]) Uses() view.Kind {
	if f.res.dependsOn == nil {
		return ""
	}
	return f.res.dependsOn(f.q)
}

// Touched implements [view.Filter].
func (f *filter[D, J]) Touched(v *view.Snapshot, changed []any) iter.Seq[any] {
	return view.Untyped(f.res.touched(v, changed))
}
