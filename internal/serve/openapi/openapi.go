// Package openapi describes HTTP routes as an OpenAPI 3.1 document. The schemas come from the types that the handlers
// encode. All functions are pure functions of their arguments.
package openapi

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

// Info has the data that all routes of a document share.
type Info struct {
	Title, Version, Description string
	Problem                     reflect.Type // of the body of an error
	ProblemMedia                string       // its content type
	License                     string       // SPDX
	Everywhere                  []int        // errors of every operation
	Parameters                  map[string]Parameter
}

// Parameter is a query parameter. A name without one stands for a parameter that selects the objects with exactly that
// value.
type Parameter struct {
	Type        string // of JSON; empty: string
	Repeated    bool
	Description string
}

// Route is one operation.
type Route struct {
	Method     string
	Path       string // as in a pattern of [http.ServeMux]
	ID         string // unique
	Summary    string
	Local      bool         // answered on the unix socket only
	Parameters []string     // of the query
	Body       reflect.Type // of the request as JSON; nil: none
	Answer     reflect.Type // nil: not JSON
	Media      string       // when it is not JSON
	Errors     []int
}

// certificate is the name of the security scheme of listeners with client certificates.
const certificate = "clientCertificate"

// Describe returns the document as JSON.
func Describe(info Info, routes []Route) ([]byte, error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: info.Title, Version: info.Version, Description: info.Description,
			License: &huma.License{Name: info.License, Identifier: info.License},
		},
		Servers: []*huma.Server{{URL: "/"}},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			certificate: {Type: "mutualTLS", Description: "A client certificate, where the listener demands one."},
		}},
		Security: []map[string][]string{{}, {certificate: {}}},
	}
	for _, rt := range routes {
		doc.AddOperation(info.operation(schemas, rt))
	}
	for name, s := range schemas.Map() {
		relax(s, schemas.TypeFromRef("#/components/schemas/"+name))
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("describing the API: %w", err)
	}
	return text, nil
}

func (info Info) operation(schemas huma.Registry, rt Route) *huma.Operation {
	content := map[string]*huma.MediaType{rt.Media: {Schema: &huma.Schema{Type: huma.TypeString}}}
	if strings.HasSuffix(rt.Media, "json") { // any object
		content[rt.Media].Schema.Type = huma.TypeObject
	}
	if rt.Answer != nil {
		content = map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(rt.Answer, true, "")}}
	}
	op := &huma.Operation{
		OperationID: rt.ID, Method: rt.Method, Path: template(rt.Path), Summary: rt.Summary,
		Parameters: append(pathParameters(rt.Path), info.queryParameters(rt.Parameters)...),
		Responses:  map[string]*huma.Response{"200": {Description: http.StatusText(http.StatusOK), Content: content}},
	}
	if rt.Body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(rt.Body, true, "")},
			"text/plain":       {Schema: &huma.Schema{Type: huma.TypeString}},
		}}
	}
	if rt.Local {
		op.Description = "Answered on the unix socket only."
	}
	for _, status := range slices.Concat(info.Everywhere, rt.Errors) {
		answer := info.Problem
		if status == http.StatusServiceUnavailable {
			answer = rt.Answer // the body is a problem document with the reasons
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{info.ProblemMedia: {Schema: schemas.Schema(answer, true, "")}},
		}
	}
	return op
}

// template returns a pattern in the form of OpenAPI. A wildcard for the rest of a path becomes one parameter, in which
// a client encodes each slash.
func template(pattern string) string {
	return strings.ReplaceAll(strings.TrimSuffix(pattern, "{$}"), "...}", "}")
}

func pathParameters(pattern string) []*huma.Param {
	var params []*huma.Param
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(template(pattern), -1) {
		params = append(params, &huma.Param{
			Name: m[1], In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
		})
	}
	return params
}

func (info Info) queryParameters(names []string) []*huma.Param {
	var params []*huma.Param
	for _, name := range names {
		known, is := info.Parameters[name]
		if !is {
			known.Description = "Exactly this " + name + "."
		}
		schema := &huma.Schema{Type: huma.TypeString}
		if known.Type != "" {
			schema.Type = known.Type
		}
		if known.Repeated {
			schema = &huma.Schema{Type: huma.TypeArray, Items: schema}
		}
		params = append(params, &huma.Param{Name: name, In: "query", Schema: schema, Description: known.Description})
	}
	return params
}

// relax corrects the schema of a type: lists are never null, pointers to objects are null unless they are left out then,
// and a later version may have more fields.
func relax(s *huma.Schema, of reflect.Type) {
	if s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	for name, p := range s.Properties {
		if p.Type == huma.TypeArray {
			p.Nullable = false
		}
		if p.Ref != "" && pointer(of, name) && slices.Contains(s.Required, name) {
			s.Properties[name] = &huma.Schema{
				Description: p.Description,
				AnyOf:       []*huma.Schema{{Ref: p.Ref}, {Extensions: map[string]any{"type": "null"}}},
			}
		}
	}
}

// pointer reports whether the field of a struct that JSON calls name is a pointer.
func pointer(of reflect.Type, name string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(of), func(f reflect.StructField) bool {
		called, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return called == name && f.Type.Kind() == reflect.Pointer
	})
}
