package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

const apiDescription = "What a mesh-agent knows of the clusters of its mesh. Reads come from one consistent snapshot. " +
	"Lists are streamed, or paged with limit and cursor. Errors are problem documents (RFC 9457)."

// describe returns the OpenAPI 3.1 document of the routes. The schemas come from
// the types that the handlers encode.
func describe(version string, routes []route) ([]byte, error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	doc := &huma.OpenAPI{
		OpenAPI:    "3.1.0",
		Info:       &huma.Info{Title: "mesh-agent", Version: version, Description: apiDescription},
		Components: &huma.Components{Schemas: schemas},
	}
	for _, rt := range routes {
		doc.AddOperation(operation(schemas, rt))
	}
	for name, s := range schemas.Map() {
		relax(name, s)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("describing the API: %w", err)
	}
	return text, nil
}

func operation(schemas huma.Registry, rt route) *huma.Operation {
	content := map[string]*huma.MediaType{rt.media: {Schema: &huma.Schema{Type: huma.TypeString}}}
	if rt.answer != nil {
		content = map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(rt.answer, true, "")}}
	}
	op := &huma.Operation{
		OperationID: rt.id, Method: rt.method, Path: strings.TrimSuffix(rt.path, "{$}"), Summary: rt.summary,
		Parameters: append(pathParameters(rt.path), queryParameters(rt.parameters)...),
		Responses:  map[string]*huma.Response{"200": {Description: http.StatusText(http.StatusOK), Content: content}},
	}
	if rt.body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(rt.body, true, "")},
			"text/plain":       {Schema: &huma.Schema{Type: huma.TypeString}},
		}}
	}
	errors := rt.errors
	if rt.local {
		op.Description = "Answered on the unix socket only."
		errors = append([]int{http.StatusForbidden}, errors...)
	}
	for _, status := range errors {
		answer := reflect.TypeFor[Problem]()
		if status == http.StatusServiceUnavailable {
			answer = rt.answer // a problem document with the reasons
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{MediaTypeProblem: {Schema: schemas.Schema(answer, true, "")}},
		}
	}
	return op
}

func pathParameters(path string) []*huma.Param {
	var params []*huma.Param
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		params = append(params, &huma.Param{
			Name: m[1], In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		})
	}
	return params
}

func queryParameters(names []string) []*huma.Param {
	var params []*huma.Param
	for _, name := range names {
		p := &huma.Param{Name: name, In: "query", Schema: &huma.Schema{Type: huma.TypeString}}
		switch name {
		case "resource":
			p.Schema = &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
			p.Description = "What to watch, such as ips; repeated. Without it, everything."
		case "since":
			p.Description = "Go on after this event: its id. The header Last-Event-ID says the same, and goes before."
		case byLabels:
			p.Description = "Only what has these labels, as kubectl's selectors: app=web,tier!=db,!test,zone in (a,b)."
		case byIdentity:
			p.Schema.Type = huma.TypeInteger
		case byPrefix:
			p.Description = "An address or a prefix: what is within it."
		case "limit":
			p.Schema.Type = huma.TypeInteger
			p.Description = fmt.Sprintf("At most this many items; %d when it is greater. Without it, all.", MaxLimit)
		case "cursor":
			p.Description = "Go on after the page that gave it as next."
		default:
			p.Description = "Exactly this " + name + "."
		}
		params = append(params, p)
	}
	return params
}

// relax makes a schema say what is so: lists are never null, pointers to
// objects may be, and a later version may have more fields.
func relax(schema string, s *huma.Schema) {
	objectsOrNull := []string{"Status.kvstore", "Status.ownCluster", "Cluster.trouble", "Cluster.policy", "Lookup.match", "Lookup.identity", "Lookup.node", "Lookup.freshness"}
	if s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	for name, p := range s.Properties {
		if p.Type == huma.TypeArray {
			p.Nullable = false
		}
		if p.Ref != "" && slices.Contains(objectsOrNull, schema+"."+name) {
			s.Properties[name] = &huma.Schema{
				Description: p.Description,
				AnyOf:       []*huma.Schema{{Ref: p.Ref}, {Extensions: map[string]any{"type": "null"}}},
			}
		}
	}
}
