package resource

import (
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Conflicts returns the kind of conflicts.
func Conflicts() Kind[api.Conflict] {
	return Kind[api.Conflict]{
		Plural: "conflicts", singular: "conflict", form: "KIND/SUBJECT", hint: ", such as ip/10.0.0.1/32",
		name: func(c api.Conflict) string { return c.Kind + "/" + c.Subject },
		table: printer.Table[api.Conflict]{
			{Title: "KIND", Text: func(c api.Conflict) string { return c.Kind }},
			{Title: "CODE", Text: func(c api.Conflict) string { return c.Code }},
			{Title: "SUBJECT", Text: func(c api.Conflict) string { return c.Subject }},
			{Title: "CLUSTERS", Text: func(c api.Conflict) string { return strings.Join(c.Clusters, ",") }},
			{Title: "SINCE", Text: func(c api.Conflict) string { return printer.Ago(&c.Since) }},
			{Title: "RULE", Wide: true, Text: func(c api.Conflict) string { return c.Rule }},
			{Title: "MESSAGE", Text: func(c api.Conflict) string { return c.Message }},
		},
		fields:   func(q *client.Query) []*string { return []*string{&q.Kind, &q.Name} },
		happened: func(c api.Conflict) time.Time { return c.Since },
	}
}

// Events returns the kind of recent events.
func Events() Kind[api.Event] {
	return Kind[api.Event]{
		Plural: "events", singular: "event", form: "ID", fades: true, ordered: true,
		happened: func(e api.Event) time.Time { return e.Time },
		name:     func(e api.Event) string { return strconv.FormatUint(e.ID, 10) },
		table: printer.Table[api.Event]{
			{Title: "ID", Right: true, Wide: true, Text: func(e api.Event) string { return strconv.FormatUint(e.ID, 10) }},
			{Title: "TIME", Text: func(e api.Event) string { return printer.Ago(&e.Time) }},
			{Title: "CLUSTER", Text: func(e api.Event) string { return e.Cluster }},
			{Title: "KIND", Text: func(e api.Event) string { return e.Kind }},
			{Title: "CODE", Text: func(e api.Event) string { return e.Code }},
			{Title: "OBJECT", Wide: true, Text: EventObject},
			{Title: "MESSAGE", Text: func(e api.Event) string { return e.Message }},
		},
	}
}

// Health returns the kind of the health of modules and tasks.
func Health() Kind[api.Health] {
	return Kind[api.Health]{
		Plural: "health", singular: "health", form: "NAME",
		name: func(h api.Health) string { return h.Name },
		table: printer.Table[api.Health]{
			{Title: "NAME", Text: func(h api.Health) string { return h.Name }},
			{Title: "STATE", Text: func(h api.Health) string { return h.State }, Color: func(h api.Health) printer.Color { return printer.WellColor(h.State == "ok") }},
			{Title: "CLUSTER", Wide: true, Text: func(h api.Health) string { return h.Cluster }},
			{Title: "LAST SUCCESS", Text: func(h api.Health) string { return printer.Ago(h.LastSuccess) }},
			{Title: "LAST FAILURE", Text: func(h api.Health) string { return printer.Ago(h.LastFailure) }},
			{Title: "FAILURES", Right: true, Wide: true, Text: func(h api.Health) string { return strconv.Itoa(h.ConsecutiveFailures) }},
			{Title: "MESSAGE", Text: func(h api.Health) string { return h.Message }},
		},
		fields: onlyName,
	}
}

// EventObject returns the object of an event, in the form that get and describe accept.
func EventObject(e api.Event) string { return strings.TrimSpace(e.Resource + " " + e.Name) }
