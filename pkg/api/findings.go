package api

import (
	"iter"
	"strconv"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

func conflictResource() *resource[*findings.Conflict, Conflict] {
	return &resource[*findings.Conflict, Conflict]{
		name: view.Conflicts, summary: "What clusters disagree on.", filters: []string{byCluster, byKind, byName},
		from: func(s *Server, v *view.Snapshot, q *query) (iter.Seq[*findings.Conflict], error) {
			query := func() statedb.Query[*findings.Conflict] { return findings.ConflictByKey(q.after) }
			return after(s.View.Conflicts, v.Txn, q.after, (*findings.Conflict).Key, query), nil
		},
		fixed: func(q *query, c *findings.Conflict) bool {
			return passes(q.kind, string(c.Kind)) && passes(q.name, c.Subject)
		},
		match: func(_ *Server, _ *view.Snapshot, q *query, c *findings.Conflict) bool {
			return q.cluster == "" || c.Involves(q.cluster)
		},
		convert:  func(_ *Server, _ *view.Snapshot, c *findings.Conflict) Conflict { return toConflict(c) },
		onePaths: []string{"/{kind}/{subject...}"},
		one: func(s *Server, v *view.Snapshot, path func(string) string) (*findings.Conflict, error) {
			key := path("kind") + "/" + path("subject")
			c, _, found := s.View.Conflicts.Get(v.Txn, findings.ConflictByKey(key))
			if !found {
				return nil, notFound("there is no conflict %q", key)
			}
			return c, nil
		},
	}
}

func eventResource() *resource[*findings.Event, Event] {
	return &resource[*findings.Event, Event]{
		name: view.Events, summary: "What happened lately, the oldest first.", filters: []string{byCluster, byKind, byName},
		from: func(s *Server, v *view.Snapshot, q *query) (iter.Seq[*findings.Event], error) {
			id, err := strconv.ParseUint(q.after, 10, 64)
			if q.after != "" && err != nil {
				return nil, errCursor()
			}
			query := func() statedb.Query[*findings.Event] { return findings.EventByID(id) }
			return after(s.View.Events, v.Txn, q.after, view.EventKey, query), nil
		},
		fixed: func(q *query, e *findings.Event) bool {
			return passes(q.kind, e.Kind) && passes(q.name, e.Name) && (q.cluster == "" || e.Involves(q.cluster))
		},
		convert:  func(_ *Server, _ *view.Snapshot, e *findings.Event) Event { return toEvent(e) },
		onePaths: []string{"/{id}"},
		one: func(s *Server, v *view.Snapshot, path func(string) string) (*findings.Event, error) {
			id, err := strconv.ParseUint(path("id"), 10, 64)
			if err != nil {
				return nil, badRequest("event %q: want a number", path("id"))
			}
			e, _, found := s.View.Events.Get(v.Txn, findings.EventByID(id))
			if !found {
				return nil, notFound("there is no event %d: there never was, or it is too old", id)
			}
			return e, nil
		},
	}
}

func toConflict(c *findings.Conflict) Conflict {
	return Conflict{
		Kind: string(c.Kind), Code: string(c.Code), Subject: c.Subject, Clusters: orEmpty(c.Clusters),
		Message: c.Message, Rule: c.Rule, Unlisted: c.More, Since: c.Since.UTC(),
	}
}

func toEvent(e *findings.Event) Event {
	event := Event{
		ID: e.ID, Time: e.Time.UTC(), Kind: e.Kind, Code: string(e.Code), Message: e.Message,
		Resource: e.Resource, Name: e.Name, Evidence: mapOrEmpty(e.Evidence),
	}
	if len(e.Clusters) > 0 {
		event.Cluster = e.Clusters[0]
	}
	return event
}
