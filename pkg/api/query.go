package api

import (
	"encoding/base64"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/selector"
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
	// Empty filters let everything pass.
	cluster, namespace, name string
	kind                     string
	contains                 string // in lower case
	labels                   selector.Selector
	identity                 *uint32
	prefix                   netip.Prefix // masked; invalid: everything passes
	limit                    int          // 0: no limit, else 1..MaxLimit
	after                    string       // key of the last item seen; empty: from the start
}

// parseQuery reads the query of a list. Parameters that the list does not have
// are refused: a filter that is silently ignored shows too much.
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
		q.after, err = decodeCursor(resource, value)
	}
	return err
}

// mentions tells whether a name has the text of the query, in whatever case.
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

// parsePrefix takes a prefix or an address, which stands for itself alone.
func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, badRequest("prefix %q: want an address such as 10.0.0.1, or a prefix such as 10.0.0.0/8", text)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < mappedBits {
			return p, badRequest("prefix %q: an IPv4-mapped prefix is at least %d bits long", text, mappedBits)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits)
	}
	return p.Masked(), nil
}

const mappedBits = 96 // by which the prefix of an IPv4 address is longer in its mapped form

func parseLimit(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		return MaxLimit, nil
	}
	if err != nil || n <= 0 {
		return 0, badRequest("limit %q: want a number from 1 to %d", text, MaxLimit)
	}
	return min(n, MaxLimit), nil
}

const cursorVersion = "1" // the first part of a decoded cursor

// encodeCursor names the last item of a page. Nobody but decodeCursor looks into it.
func encodeCursor(resource, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + "/" + resource + "/" + key))
}

// decodeCursor returns the key of the last item that the client has seen. It
// fails when the cursor is not one of this resource.
func decodeCursor(resource, cursor string) (string, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", errCursor()
	}
	key, ok := strings.CutPrefix(string(raw), cursorVersion+"/"+resource+"/")
	if !ok || key == "" || encodeCursor(resource, key) != cursor { // base64 lets line ends pass
		return "", errCursor()
	}
	return key, nil
}

func errCursor() *Problem {
	return badRequest("cursor: not a cursor of this list; start again without one")
}
