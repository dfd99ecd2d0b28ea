package api

import (
	"fmt"
	"reflect"

	"github.com/mesh-agent/mesh-agent/pkg/api/openapi"
)

// describe returns the OpenAPI document of the routes.
func describe(version string, routes []route) ([]byte, error) {
	return openapi.Describe(openapi.Info{
		Title: "mesh-agent", Version: version,
		Description: "What a mesh-agent knows of the clusters of its mesh. Reads come from one consistent snapshot. " +
			"Lists are streamed, or paged with limit and cursor. Errors are problem documents (RFC 9457).",
		Problem: reflect.TypeFor[Problem](), ProblemMedia: MediaTypeProblem,
		Parameters: map[string]openapi.Parameter{
			"resource": {Repeated: true, Description: "What to watch, such as ips; repeated. Without it, everything."},
			"since":    {Description: "Go on after this event: its id. The header Last-Event-ID says the same, and goes before."},
			byLabels:   {Description: "Only what has these labels, as kubectl's selectors: app=web,tier!=db,!test,zone in (a,b)."},
			byContains: {Description: "Only what has this text in its name, whatever the case: NAMESPACE/NAME of services and pods, CLUSTER/NAME of nodes, prefixes of addresses."},
			byIdentity: {Type: "integer"},
			byPrefix:   {Description: "An address or a prefix: what is within it."},
			"limit":    {Type: "integer", Description: fmt.Sprintf("At most this many items; %d when it is greater. Without it, all.", MaxLimit)},
			"cursor":   {Description: "Go on after the page that gave it as next."},
		},
		Nullable: []string{
			"Status.kvstore", "Status.ownCluster", "Cluster.trouble", "Cluster.policy",
			"Lookup.match", "Lookup.identity", "Lookup.node", "Lookup.freshness",
		},
	}, converted(routes, func(rt route) openapi.Route {
		return openapi.Route{
			Method: rt.method, Path: rt.path, ID: rt.id, Summary: rt.summary, Local: rt.local, Parameters: rt.parameters,
			Body: rt.body, Answer: rt.answer, Media: rt.media, Errors: rt.errors,
		}
	}))
}
