package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// contractShapes are the objects: their fields and the types of these.
const contractShapes = `
Status         agent:Agent state:starting|ready|degraded ready:bool summary:Summary clusters:[]Cluster kvstore:KVStore? ownCluster:Cluster?
Agent          version:string cluster:string clusterID:number node:string started:time mode:run|operate|mirror
Summary        clusters:number clustersReady:number nodes:number services:number globalServices:number identities:number ips:number conflicts:number
KVStore        connected:bool endpoints:[]string lease:string heartbeatAgeSeconds:number? lastError:string
Cluster        name:string id:number state:connecting|syncing|ready|degraded|failed|removing ready:bool connected:bool cached:bool message:string
Cluster        endpoints:[]string etcdClusterID:string configFile:string capabilities:object synced:Synced counts:Counts rejected:Counts
Cluster        freshness:Freshnesses failures:number lastFailure:time? lastError:string connectedSince:time? lastEvent:time?
Cluster        code:string remedy:string trouble:Trouble?
Trouble        kind:failed|connecting|lost|degraded|stale|syncing|removing remedy:string
Synced         nodes:bool services:bool identities:bool ips:bool
Counts         nodes:number services:number identities:number ips:number
Freshnesses    nodes:Freshness services:Freshness identities:Freshness ips:Freshness worst:Freshness
Freshness      state:string asOf:time? ageSeconds:number?
Node           cluster:string clusterID:number name:string addresses:[]NodeAddress podCIDRs:[]string healthIPs:[]string ingressIPs:[]string
Node           encryptionKey:number wireguardPublicKey:string identity:number bootID:string labels:texts annotations:texts
NodeAddress    type:string ip:string
Service        namespace:string name:string global:bool affinity:string clusters:[]ServiceCluster backends:[]Backend
ServiceCluster cluster:string shared:bool includeExternal:bool backends:number reason:string
Backend        ip:string cluster:string ports:[]Port hostname:string zone:string preferred:bool local:bool
Port           name:string protocol:string port:number
Identity       id:number cluster:string clusterID:number labels:texts
IP             prefix:string cluster:string clusterID:number identity:number hostIP:string encryptionKey:number namespace:string pod:string
IP             source:string kind:endpoint|node|pod-cidr|health|ingress claims:number
Lookup         ip:string match:IP? identity:Identity? node:Node? services:[]ServiceName candidates:[]Candidate
ServiceName    namespace:string name:string
Candidate      entry:IP won:bool reason:string
Conflict       kind:cluster-id|cluster-name|pod-cidr|ip|node-ip|claim|identity|service-port|service-affinity subject:string clusters:[]string message:string since:time
Event          time:time cluster:string kind:string code:string message:string resource:string name:string evidence:texts
Health         name:string cluster:string state:string message:string lastSuccess:time? lastFailure:time? consecutiveFailures:number
Problem        type:string title:string status:number detail:string
Ready          ready:bool reasons:texts
`

// shapes are objects by name, each with the types of its fields. A type is string, number, bool, time (RFC 3339),
// object, texts (an object of strings), the possible strings (a|b), or a shape; []T is an array, T? may be null. List:T
// is a page of a list. Objects may have more fields.
type shapes struct {
	fields map[string]map[string]string
	mu     sync.Mutex
	seen   map[string]bool // guarded by mu
}

// readShapes reads one shape per line; a shape may be composed of several others.
func readShapes(text string) *shapes {
	s := &shapes{fields: map[string]map[string]string{}, seen: map[string]bool{}}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words := strings.Fields(line)
		if s.fields[words[0]] == nil {
			s.fields[words[0]] = map[string]string{}
		}
		for _, word := range words[1:] {
			name, kind, _ := strings.Cut(word, ":")
			s.fields[words[0]][name] = kind
		}
	}
	return s
}

// unseen returns the shapes that were never compared with a value.
func (s *shapes) unseen() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.fields {
		if !s.seen[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// check compares a value, as encoding/json makes it, with a type.
func (s *shapes) check(kind string, v any) error {
	if item, ok := strings.CutPrefix(kind, "List:"); ok {
		return s.checkFields(map[string]string{"revision": "number", "items": "[]" + item, "next": "string"}, v)
	}
	if item, ok := strings.CutPrefix(kind, "[]"); ok {
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%v is no array", v)
		}
		for i, one := range list {
			if err := s.check(item, one); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	}
	if nullable, ok := strings.CutSuffix(kind, "?"); ok {
		if v == nil {
			return nil
		}
		kind = nullable
	}
	if fields := s.fields[kind]; fields != nil {
		s.mu.Lock()
		s.seen[kind] = true
		s.mu.Unlock()
		return s.checkFields(fields, v)
	}
	text, isText := v.(string)
	ok := false
	switch kind {
	case "string":
		ok = isText
	case "number":
		_, ok = v.(float64)
	case "bool":
		_, ok = v.(bool)
	case "object":
		_, ok = v.(map[string]any)
	case "time":
		_, err := time.Parse(time.RFC3339Nano, text)
		ok = err == nil
	case "texts":
		var texts map[string]any
		if texts, ok = v.(map[string]any); ok {
			for _, value := range texts {
				_, isText := value.(string)
				ok = ok && isText
			}
		}
	default:
		ok = isText && slices.Contains(strings.Split(kind, "|"), text)
	}
	if !ok {
		return fmt.Errorf("%v is no %s", v, kind)
	}
	return nil
}

func (s *shapes) checkFields(fields map[string]string, v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no object", v)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, has := object[name]
		if !has {
			return fmt.Errorf("there is no %q", name)
		}
		if err := s.check(fields[name], value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// openAPI has the parts of an OpenAPI document that validate needs.
type openAPI struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]map[string]any }
}

// validate compares an answer with the document. An undocumented request or answer is an error, except 404 for an
// unknown path and 405 for an unknown method.
func (d openAPI) validate(method, path string, status int, media string, body []byte) error {
	documented := d.find(path)
	operation, ok := d.Paths[documented][strings.ToLower(method)]
	if !ok {
		if documented == "" && status == 404 || documented != "" && status == 405 {
			return nil
		}
		return fmt.Errorf("%s %q is not there, and answers %d", method, documented, status)
	}
	content, ok := operation.Responses[strconv.Itoa(status)].Content[media]
	if !ok {
		return fmt.Errorf("%d with %q is not there", status, media)
	}
	if content.Schema["type"] == "string" { // text
		return nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return d.check(content.Schema, v)
}

// find returns the documented path that matches a path; if there are several, the one with the fewest parameters.
func (d openAPI) find(path string) (best string) {
	for candidate := range d.Paths {
		pattern := regexp.QuoteMeta(candidate)
		pattern = regexp.MustCompile(`\\\{\w+\\\.\\\.\\\.\\\}`).ReplaceAllString(pattern, `.+`)
		pattern = regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(pattern, `[^/]+`)
		if regexp.MustCompile("^"+pattern+"$").MatchString(path) && (best == "" || strings.Count(candidate, "{") < strings.Count(best, "{")) {
			best = candidate
		}
	}
	return best
}

// check compares a value with a JSON Schema. An unknown keyword of the schema is an error, so that none is ignored.
func (d openAPI) check(schema map[string]any, v any) error {
	for word, arg := range schema {
		if err := d.checkWord(word, arg, schema, v); err != nil {
			return err
		}
	}
	return nil
}

func (d openAPI) checkWord(word string, arg any, schema map[string]any, v any) error {
	switch word {
	case "description":
		return nil
	case "$ref":
		name := strings.TrimPrefix(arg.(string), "#/components/schemas/")
		if err := d.check(d.Components.Schemas[name], v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	case "anyOf":
		var errs []error
		for _, one := range arg.([]any) {
			err := d.check(one.(map[string]any), v)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	case "type":
		kinds, several := arg.([]any)
		if !several {
			kinds = []any{arg}
		}
		if !slices.ContainsFunc(kinds, func(kind any) bool { return isOfType(kind, v) }) {
			return fmt.Errorf("%v is not %v", v, arg)
		}
		return nil
	case "enum":
		if !slices.Contains(arg.([]any), v) {
			return fmt.Errorf("%v is none of %v", v, arg)
		}
		return nil
	case "minimum":
		if n, ok := v.(float64); ok && n < arg.(float64) {
			return fmt.Errorf("%v is below %v", v, arg)
		}
		return nil
	case "format":
		if text, ok := v.(string); ok && arg == "date-time" {
			_, err := time.Parse(time.RFC3339Nano, text)
			return err
		}
		return nil
	case "required":
		object, _ := v.(map[string]any)
		for _, name := range arg.([]any) {
			if _, has := object[name.(string)]; !has {
				return fmt.Errorf("there is no %q", name)
			}
		}
		return nil
	case "items":
		list, _ := v.([]any)
		for i, one := range list {
			if err := d.check(arg.(map[string]any), one); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	case "properties", "additionalProperties":
		return d.checkProperties(schema, v)
	}
	return fmt.Errorf("the schema's %q is unknown to this test", word)
}

// checkProperties checks the fields that the schema names, and the others if the schema restricts them.
func (d openAPI) checkProperties(schema map[string]any, v any) error {
	object, _ := v.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	for name, value := range object {
		property, named := properties[name].(map[string]any)
		if !named {
			property = others
		}
		if err := d.check(property, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// isOfType reports whether a value has one of JSON Schema's types.
func isOfType(kind, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	}
	return kind == "object"
}
