package api

import (
	"strconv"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

func conflictResource() *resource[*findings.Conflict, Conflict] {
	return inTable(&resource[*findings.Conflict, Conflict]{
		name: view.Conflicts, summary: "What clusters disagree on.", filters: []string{byCluster, byKind, byName},
		fixed: func(q *query, c *findings.Conflict) bool {
			return passes(q.kind, string(c.Kind)) && passes(q.name, c.Subject)
		},
		match: func(_ *Server, _ *view.Snapshot, q *query, c *findings.Conflict) bool {
			return q.cluster == "" || c.Involves(q.cluster)
		},
		convert: func(_ *Server, _ *view.Snapshot, c *findings.Conflict) Conflict { return toConflict(c) },
		paths:   []string{"/{kind}/{subject...}"}, missing: "there is no conflict %[3]q",
	}, func(v *view.View) statedb.Table[*findings.Conflict] { return v.Conflicts },
		func(key string) (statedb.Query[*findings.Conflict], error) { return findings.ConflictByKey(key), nil })
}

func eventResource() *resource[*findings.Event, Event] {
	return inTable(&resource[*findings.Event, Event]{
		name: view.Events, summary: "What happened lately, the oldest first.", filters: []string{byCluster, byKind, byName},
		fixed: func(q *query, e *findings.Event) bool {
			return passes(q.kind, e.Kind) && passes(q.name, e.Name) && (q.cluster == "" || e.Involves(q.cluster))
		},
		convert: func(_ *Server, _ *view.Snapshot, e *findings.Event) Event { return toEvent(e) },
		paths:   []string{"/{id}"}, missing: "there is no event %[1]s: there never was, or it is too old",
	}, func(v *view.View) statedb.Table[*findings.Event] { return v.Events },
		func(key string) (statedb.Query[*findings.Event], error) {
			id, err := strconv.ParseUint(key, 10, 64)
			if err != nil {
				return statedb.Query[*findings.Event]{}, badRequest("event %q: want a number", key)
			}
			return findings.EventByID(id), nil
		})
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
