package api

import "iter"

// watchable is a resource as a watch sees it.
type watchable interface {
	title() string
	filterNames() []string
	followIn(s *Server) (follower, error)
	// leansOn names the resource that the filters look at beside this one, and
	// affected gives what changes of that one may have touched.
	leansOn(q *query) string
	affected(v *view, changed []any) iter.Seq[any]
	// state gives every object of the domain that passes the query.
	state(s *Server, v *view, q *query, give func(object any) error) error
	// keyOf names an object of the domain.
	keyOf(object any) string
	// show converts an object of the domain, without what moves all the time.
	show(s *Server, v *view, object any) any
	// may and does tell whether it passes the filters: those whose answer never
	// changes, and the others.
	may(q *query, object any) bool
	does(s *Server, v *view, q *query, object any) bool
}

func (res resource[D, J]) title() string                        { return res.name }
func (res resource[D, J]) filterNames() []string                { return res.filters }
func (res resource[D, J]) followIn(s *Server) (follower, error) { return res.follow(s) }
func (res resource[D, J]) keyOf(object any) string              { return res.key(object.(D)) }
func (res resource[D, J]) may(q *query, object any) bool        { return res.fixed(q, object.(D)) }

func (res resource[D, J]) leansOn(q *query) string {
	if res.leans == nil {
		return ""
	}
	return res.leans(q)
}

func (res resource[D, J]) affected(v *view, changed []any) iter.Seq[any] {
	return func(yield func(any) bool) {
		for d := range res.touched(v, changed) {
			if !yield(d) {
				return
			}
		}
	}
}

func (res resource[D, J]) show(s *Server, v *view, object any) any {
	j := res.convert(s, v, object.(D))
	if res.settle != nil {
		res.settle(&j)
	}
	return j
}

func (res resource[D, J]) does(s *Server, v *view, q *query, object any) bool {
	return res.passes(s, v, q, object.(D))
}

func (res resource[D, J]) state(s *Server, v *view, q *query, give func(any) error) error {
	items, err := res.from(s, v, q)
	if err != nil {
		return err
	}
	for d := range items {
		if !res.fixed(q, d) || !res.passes(s, v, q, d) {
			continue
		}
		if err := give(d); err != nil {
			return err
		}
	}
	return nil
}
