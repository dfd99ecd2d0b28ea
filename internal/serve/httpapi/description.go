package httpapi

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/mesh-agent/mesh-agent/internal/serve/openapi"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// describe returns the OpenAPI document of the routes.
func describe(version string, routes []route) ([]byte, error) {
	return openapi.Describe(openapi.Info{
		Title: "mesh-agent", Version: version,
		Description: "The view of all clusters of a mesh. Reads come from one consistent snapshot. " +
			"Lists are streamed, or paged with limit and cursor. Errors are problem documents (RFC 9457).",
		Problem: reflect.TypeFor[api.Problem](), ProblemMedia: api.MediaTypeProblem, License: "Apache-2.0",
		Everywhere: []int{http.StatusForbidden, http.StatusMisdirectedRequest}, // the answers of guard
		Parameters: map[string]openapi.Parameter{
			"resource": {Repeated: true, Description: "The resources to watch, such as ips; repeated. Without it, all."},
			"since":    {Description: "Continue after the event with this id. The header Last-Event-ID has the same meaning, and priority."},
			byLabels:   {Description: "Only objects with these labels, like kubectl's selectors: app=web,tier!=db,!test,zone in (a,b)."},
			byContains: {Description: "Only objects with this text in their name, in upper or lower case: NAMESPACE/NAME of services and pods, CLUSTER/NAME of nodes, prefixes of addresses."},
			byIdentity: {Type: "integer"},
			byPrefix:   {Description: "An address or a prefix: only objects in it."},
			"limit":    {Type: "integer", Description: fmt.Sprintf("At most this many items; %d when it is greater. Without it, all.", api.MaxLimit)},
			"cursor":   {Description: "The next of the previous page."},
		},
	}, converted(routes, func(rt route) openapi.Route {
		return openapi.Route{
			Method: rt.method, Path: rt.path, ID: rt.id, Summary: rt.summary, Local: rt.local, Parameters: rt.parameters,
			Body: rt.body, Answer: rt.answer, Media: rt.media, Errors: rt.errors,
		}
	}))
}
