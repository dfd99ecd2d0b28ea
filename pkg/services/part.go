package services

import (
	"cmp"
	"slices"
	"strings"
)

// part returns a cluster's part in a service, from its entry of the older form, nil when it has none, and its slices,
// which are sorted in place. It returns nil when there is neither. The part may be the entry itself, and shares ports
// and texts with both.
//
// While there is an entry, it decides. When it is removed, remaining slices are used as if the cluster exported slices
// alone: the two formats are two streams. So a service that was deleted in both exists here until the stream of slices
// has that deletion too. The freshness of the slices shows how far that stream is.
func part(entry *Service, of []*Slice, use BackendUse) *Service {
	slices.SortFunc(of, func(a, b *Slice) int { return strings.Compare(a.Name, b.Name) })
	p := entry
	switch {
	case len(of) == 0:
	case entry == nil:
		p = fromSlices(of)
	default:
		p = detailed(entry, of)
	}
	if p == nil || use == Full {
		return p
	}
	w := *p
	w.Use = use
	return &w
}

// WithSlices returns the service with the data that its slices have about its backends: conditions, nodes, and missing
// zones and host names. The slices are sorted in place.
func (s *Service) WithSlices(of []*Slice) *Service { return part(s, of, Full) }

// fromSlices returns the part of a cluster that exports slices alone. Only slices of shared services are exported
// (wire.md §1.4).
func fromSlices(of []*Slice) *Service {
	first := of[0]
	p := &Service{
		Cluster: first.Cluster, ClusterID: first.ClusterID, Source: first.Source,
		Shared: true, IncludeExternal: true, Sliced: true,
		Namespace: first.Namespace, Name: first.Service,
	}
	all := gather(of)
	if usable := slices.DeleteFunc(all, func(b Backend) bool { return !b.Usable() }); len(usable) > 0 {
		p.Backends = slices.Clone(usable) // exactly as large as needed, since it is kept
	}
	for _, s := range slices.Backward(of) { // in reverse, so that the first slice has priority
		for l := range s.labels.All() {
			if p.Labels == nil {
				p.Labels = make(map[string]string)
			}
			p.Labels[l.Key] = l.Value
		}
	}
	return p
}

// detailed returns the entry with the data that the slices have about its backends.
func detailed(entry *Service, of []*Slice) *Service {
	known := gather(of)
	var backends []Backend
	for i, b := range entry.Backends {
		k, found := find(known, b.IP)
		if !found {
			continue
		}
		b.Conditions = k.Conditions
		b.Node = k.Node
		b.Zone = cmp.Or(b.Zone, k.Zone)
		b.Hostname = cmp.Or(b.Hostname, k.Hostname)
		if b.Equal(entry.Backends[i]) {
			continue
		}
		if backends == nil {
			backends = slices.Clone(entry.Backends)
		}
		backends[i] = b
	}
	if backends == nil {
		return entry
	}
	p := *entry
	p.Backends = backends
	return &p
}

// gather returns all endpoints of the slices of one service, sorted by address, one for each.
func gather(of []*Slice) []Backend {
	n := 0
	for _, s := range of {
		n += s.NumEndpoints()
	}
	out := make([]Backend, 0, n)
	for _, s := range of {
		out = slices.AppendSeq(out, s.Endpoints())
	}
	return foldBackends(byAddress(out))
}
