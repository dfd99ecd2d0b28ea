package httpapi

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/selector"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// The filters of lists. Each resource has some of them.
const (
	byCluster   = "cluster"
	byNamespace = "namespace"
	byName      = "name"
	byIdentity  = "identity"
	byPrefix    = "prefix"
	byLabels    = "labels"
	byKind      = "kind"
	byContains  = "contains"
)

type query struct {
	// An empty filter passes everything.
	cluster, namespace, name string
	kind                     string
	contains                 string // in lower case
	labels                   selector.Selector
	identity                 *uint32
	prefix                   netip.Prefix // masked; invalid: everything passes
	limit                    int          // 0: no limit, otherwise 1..MaxLimit
	after                    string       // key of the last item that the client has; empty: from the start
}

// parseQuery parses the query of a list. Parameters that the list does not have are refused: a filter that is
// silently ignored shows too many items.
func parseQuery(resource string, filters []string, raw string) (query, error) {
	var q query
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, badRequest("query: %v", err)
	}
	for name, given := range values {
		if err := q.set(resource, filters, name, given); err != nil {
			return q, err
		}
	}
	return q, nil
}

func (q *query) set(resource string, filters []string, name string, given []string) error {
	if !slices.Contains(filters, name) && name != "limit" && name != "cursor" {
		return badRequest("%s: %s cannot be filtered by it; parameters are %s, limit, cursor",
			name, resource, strings.Join(filters, ", "))
	}
	if len(given) > 1 {
		return badRequest("%s: given %d times", name, len(given))
	}
	value := given[0]
	if value == "" && name != "limit" {
		return nil
	}
	var err error
	switch name {
	case byCluster:
		q.cluster = value
	case byNamespace:
		q.namespace = value
	case byName:
		q.name = value
	case byIdentity:
		q.identity, err = parseIdentity(value)
	case byPrefix:
		q.prefix, err = parsePrefix(value)
	case byLabels:
		if q.labels, err = selector.Parse(value); err != nil {
			err = badRequest("labels %q: %v", value, err)
		}
	case byKind:
		q.kind = value
	case byContains:
		q.contains = strings.ToLower(value)
	case "limit":
		q.limit, err = parseLimit(value)
	case "cursor":
		var ok bool
		if q.after, ok = transport.DecodeCursor(resource, value); !ok {
			err = errCursor()
		}
	}
	return err
}

// mentions reports whether a name contains the text of the query; case does not matter.
func (q *query) mentions(name string) bool {
	return q.contains == "" || strings.Contains(strings.ToLower(name), q.contains)
}

func parseIdentity(text string) (*uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, badRequest("identity %q: want a number", text)
	}
	return new(uint32(n)), nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	p, err := ipcache.ParsePrefix(text)
	if err != nil {
		return p, badRequest("%v", err)
	}
	return p, nil
}

func parseLimit(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		return api.MaxLimit, nil
	}
	if err != nil || n <= 0 {
		return 0, badRequest("limit %q: want a number from 1 to %d", text, api.MaxLimit)
	}
	return min(n, api.MaxLimit), nil
}

func errCursor() *api.Problem {
	return badRequest("cursor: not a cursor of this list; start again without one")
}
