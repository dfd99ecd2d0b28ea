package httpapi

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/internal/base/selector"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func ipResource() *resource[*ipcache.Entry, api.IP] {
	return &resource[*ipcache.Entry, api.IP]{
		name: view.IPs, summary: "The winning claim of every prefix.",
		filters: []string{byCluster, byNamespace, byName, byContains, byIdentity, byPrefix, byLabels},
		from:    ipsFrom,
		fixed:   func(q *query, e *ipcache.Entry) bool { return !q.prefix.IsValid() || within(q.prefix, e.Prefix()) },
		match: func(s *Server, v *view.Snapshot, q *query, e *ipcache.Entry) bool {
			return passes(q.cluster, e.Cluster().Name) && passes(q.namespace, e.Namespace()) &&
				(q.name == "" || q.name == e.Pod() || q.name == e.NodeName()) &&
				mentioned(q, e) &&
				(q.identity == nil || *q.identity == e.Identity()) &&
				(q.labels == nil || hasLabels(s, v, q.labels, e))
		},
		// The labels of an address are those of its identity, which may be added after the address, or removed before
		// it (wire.md §3.7).
		dependsOn: func(q *query) view.Kind {
			if q.labels == nil {
				return ""
			}
			return view.Identities
		},
		touched: withIdentities,
		convert: func(_ *Server, v *view.Snapshot, e *ipcache.Entry) api.IP { return toIP(e, v.IPs.Claims(e)) },
		paths:   []string{"/{address}", "/{address}/{length}"},
		one:     oneIP,
	}
}

// mentioned reports whether the prefix of an address or the name of its pod contains the text of the query.
func mentioned(q *query, e *ipcache.Entry) bool {
	return q.contains == "" || q.mentions(e.Prefix().String()) || q.mentions(e.Namespace()+"/"+e.Pod())
}

func withIdentities(v *view.Snapshot, all []any) iter.Seq[*ipcache.Entry] {
	ids := make(map[uint32]bool, len(all))
	for _, object := range all {
		ids[object.(*identities.Identity).ID] = true
	}
	return filtered(v.IPs.From(netip.Prefix{}), func(e *ipcache.Entry) bool { return ids[e.Identity()] })
}

func hasLabels(s *Server, v *view.Snapshot, labels selector.Selector, e *ipcache.Entry) bool {
	id := identityOf(e, s.View.IdentityOf(v.Txn, e))
	return id != nil && labels.Matches(maps.All(id.Labels))
}

// maxIndexed is the maximum number of addresses with an identity that are looked up one by one. When there are more,
// a scan of all addresses in their order is as fast: a page is soon full.
const maxIndexed = 8192

// ipsFrom returns only addresses within the query's prefix, which is one range of the snapshot. When few addresses
// have the query's identities, it returns only these.
func ipsFrom(s *Server, v *view.Snapshot, q *query) (iter.Seq[*ipcache.Entry], error) {
	var last netip.Prefix
	if q.after != "" {
		var err error
		if last, err = netip.ParsePrefix(q.after); err != nil {
			return nil, errCursor()
		}
	}
	if q.prefix.IsValid() {
		if start := justBefore(q.prefix.Addr()); comparePrefixes(last, start) < 0 {
			last = start
		}
	}
	all := v.IPs.From(last)
	if q.identity != nil || q.labels != nil {
		if found, ok := s.View.WithIdentities(v, identitiesOf(s, v, q), maxIndexed); ok {
			i, seen := slices.BinarySearchFunc(found, last, func(e *ipcache.Entry, last netip.Prefix) int { return comparePrefixes(e.Prefix(), last) })
			if seen {
				i++
			}
			all = slices.Values(found[i:])
		}
	}
	if !q.prefix.IsValid() {
		return all, nil
	}
	return func(yield func(*ipcache.Entry) bool) {
		for e := range all {
			if !q.prefix.Contains(e.Prefix().Addr()) || !yield(e) {
				return
			}
		}
	}, nil
}

// identitiesOf returns the identity numbers that the addresses of a query may have: numbers for which an identity of
// some cluster passes, or a reserved identity.
func identitiesOf(s *Server, v *view.Snapshot, q *query) []uint32 {
	if q.identity != nil {
		return []uint32{*q.identity}
	}
	var ids []uint32
	for id := uint32(0); ; id++ {
		name, reserved := wire.ReservedIdentityName(id)
		if !reserved {
			break
		}
		if q.labels.Matches(maps.All(map[string]string{wire.LabelSourceReserved + ":" + name: ""})) {
			ids = append(ids, id)
		}
	}
	for i := range s.View.Identities.Table().All(v.Txn) {
		if q.labels.Matches(maps.All(i.Map())) {
			ids = append(ids, i.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// justBefore returns the last prefix before those that begin with the address: none for the very first address.
func justBefore(a netip.Addr) netip.Prefix {
	before := a.Prev()
	if a == netip.IPv6Unspecified() {
		before = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	if !before.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(before, before.BitLen())
}

// comparePrefixes compares in the order of the snapshot: by address, then by length.
func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// oneIP returns the winner of a prefix: of exactly this prefix, not of one that contains it.
func oneIP(s *Server, _ *view.Snapshot, path func(string) string) (*ipcache.Entry, error) {
	text := path("address")
	if length := path("length"); length != "" {
		text += "/" + length
	}
	prefix, err := parsePrefix(text)
	if err != nil {
		return nil, err
	}
	around := s.View.IPs.Lookup(prefix.Addr()).Claims
	for _, e := range around {
		if e.Prefix() == prefix {
			return e, nil
		}
	}
	if len(around) > 0 && prefix.IsSingleIP() {
		return nil, notFound("no cluster claims %s itself, but it is in %s of cluster %s: 'mesh-agent lookup %s' (/v1/lookup/%[4]s) shows more",
			prefix, around[0].Prefix(), around[0].Cluster().Name, prefix.Addr())
	}
	return nil, notFound("no cluster claims %s", prefix)
}
