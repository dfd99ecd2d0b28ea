package endpointslices

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// MaxEndpoints is the maximum number of endpoints in a slice (mcs.md C).
const MaxEndpoints = 100

// Input is the input of a plan.
type Input struct {
	// Service is that of the own cluster.
	Service *corev1.Service
	// Declined: the Service gets no slices, even if its annotations request them.
	Declined bool
	// Global is what the view has under its name; nil is nothing.
	Global *services.Global
	// Held are the slices of the Service that this program wrote ([IsOurs]), in any order.
	Held []*discoveryv1.EndpointSlice
	// Keep tells of a cluster whether its slices are to stay as they are; nil: none are.
	Keep func(cluster string) bool
	// Own reports whether an address is one of the own cluster, which no remote backend has; nil: none is known.
	Own func(netip.Addr) bool
	// Taken reports whether a slice of this name exists in the namespace, whosever it is; nil: those
	// that are held alone.
	Taken func(name string) bool
	// Grant is asked before a slice of a cluster is planned that there is none of yet: false leaves
	// its endpoints out. Nil: all are granted.
	Grant func(cluster string) bool
}

// Change is one change of a slice: its creation, its update or its deletion.
type Change struct {
	// Was is how the slice is; nil: it is to be created.
	Was *discoveryv1.EndpointSlice
	// To is what it is to be; nil: it is to be deleted.
	To *discoveryv1.EndpointSlice
	// Remote: it follows from what remote clusters say, not from the Service.
	Remote bool
}

// Removes reports whether all endpoints of a slice that has any go.
func (c Change) Removes() bool {
	return c.Was != nil && len(c.Was.Endpoints) > 0 && (c.To == nil || len(c.To.Endpoints) == 0)
}

// Changes are what a plan says.
type Changes struct {
	// All are to be carried out in this order: deletions come last.
	All []Change
	// LeftOut is how many endpoints have no slice, since none was granted.
	LeftOut int
	Refused Refused
}

// Plan returns the changes that make the slices of a Service correct. It has no change for a slice that is already
// correct. The objects that it makes share nothing with the Service.
func Plan(s Input) Changes {
	p := planner{Input: s, names: make(map[string]bool), gone: make(map[place]bool)}
	held := make(map[place][]*discoveryv1.EndpointSlice)
	for _, slice := range s.Held {
		p.names[slice.Name] = true
		at := place{slice.Labels[LabelCluster], slice.AddressType}
		held[at] = append(held[at], slice)
	}
	if s.Declined || !Eligible(s.Service) {
		for _, at := range slices.SortedFunc(maps.Keys(held), place.compare) {
			p.drop(held[at], false)
		}
		return p.changes()
	}
	w, refused := want(s.Service, s.Global, s.Own)
	p.refused = refused
	for at := range held {
		if _, wanted := w[at]; !wanted {
			w[at] = nil
			p.gone[at] = true
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(w), place.compare) {
		switch {
		case s.Keep != nil && s.Keep(at.cluster):
		case p.gone[at]:
			p.drop(held[at], slices.Contains(families(s.Service), at.family))
		default:
			p.fill(at, w[at], held[at])
		}
	}
	return p.changes()
}

// planner makes one plan.
type planner struct {
	Input
	names            map[string]bool // of slices of the service, planned ones included
	gone             map[place]bool  // these are not wanted
	applied, deleted []Change
	leftOut          int
	refused          Refused
}

func (p *planner) changes() Changes {
	return Changes{append(p.applied, p.deleted...), p.leftOut, p.refused}
}

func (p *planner) drop(all []*discoveryv1.EndpointSlice, remote bool) {
	for _, slice := range sortedByName(all) {
		p.deleted = append(p.deleted, Change{Was: slice, Remote: remote})
	}
}

func sortedByName(all []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	return slices.SortedFunc(slices.Values(all), func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
}

// sliceDraft is a slice that is being filled.
type sliceDraft struct {
	was       *discoveryv1.EndpointSlice // nil for a new one
	key       string                     // of ports; without endpoints it may become another one
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
}

// fill plans the slices of one place: endpoints stay where they are, then fill the slices with room, then
// those that have become empty, then new ones.
func (p *planner) fill(at place, groups []group, held []*discoveryv1.EndpointSlice) {
	var drafts []*sliceDraft
	for _, slice := range sortedByName(held) {
		drafts = append(drafts, &sliceDraft{was: slice, key: keyOf(slice.Ports)})
	}
	for i := range groups {
		rest := retain(&groups[i], drafts)
		for _, d := range drafts {
			if d.key == groups[i].key {
				rest = d.take(&groups[i], rest)
			}
		}
		groups[i].endpoints = rest
	}
	for i := range groups {
		drafts = p.add(at, &groups[i], drafts)
	}
	p.finish(at, drafts)
}

// retain leaves the endpoints of a group in the slices that have them, and returns the others, by address.
func retain(g *group, drafts []*sliceDraft) (rest []discoveryv1.Endpoint) {
	missing := make(map[string]*discoveryv1.Endpoint, len(g.endpoints))
	for i := range g.endpoints {
		missing[g.endpoints[i].Addresses[0]] = &g.endpoints[i]
	}
	for _, d := range drafts {
		if d.key != g.key {
			continue
		}
		for i := range d.was.Endpoints {
			has := d.was.Endpoints[i].Addresses
			if len(has) != 1 || missing[has[0]] == nil || len(d.endpoints) == MaxEndpoints {
				continue
			}
			d.ports, d.endpoints = g.ports, append(d.endpoints, *missing[has[0]])
			delete(missing, has[0])
		}
	}
	for _, e := range missing {
		rest = append(rest, *e)
	}
	slices.SortFunc(rest, func(a, b discoveryv1.Endpoint) int { return addressOf(a).Compare(addressOf(b)) })
	return rest
}

// addressOf is that of an endpoint that was made here.
func addressOf(e discoveryv1.Endpoint) netip.Addr {
	ip, _ := netip.ParseAddr(e.Addresses[0])
	return ip
}

// take fills a slice as far as there is room, and returns the remaining endpoints.
func (d *sliceDraft) take(g *group, rest []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	n := min(len(rest), MaxEndpoints-len(d.endpoints))
	if n <= 0 {
		return rest
	}
	d.key, d.ports, d.endpoints = g.key, g.ports, append(d.endpoints, rest[:n]...)
	return rest[n:]
}

// add puts the remaining endpoints of a group into slices that have become empty, and into new ones.
func (p *planner) add(at place, g *group, drafts []*sliceDraft) []*sliceDraft {
	rest := g.endpoints
	for _, d := range drafts {
		if len(rest) > 0 && len(d.endpoints) == 0 {
			rest = d.take(g, rest)
		}
	}
	for len(rest) > 0 {
		if p.Grant != nil && !p.Grant(at.cluster) {
			p.leftOut += len(rest)
			break
		}
		d := new(sliceDraft)
		rest = d.take(g, rest)
		drafts = append(drafts, d)
	}
	return drafts
}

// finish plans what differs. Of slices without endpoints one stays, when no other one does.
func (p *planner) finish(at place, drafts []*sliceDraft) {
	filled := slices.ContainsFunc(drafts, func(d *sliceDraft) bool { return len(d.endpoints) > 0 })
	if len(drafts) == 0 {
		if p.Grant != nil && !p.Grant(at.cluster) {
			return
		}
		drafts = []*sliceDraft{new(sliceDraft)}
	}
	for _, d := range drafts {
		if len(d.endpoints) == 0 {
			if filled {
				p.deleted = append(p.deleted, Change{Was: d.was, Remote: true})
				continue
			}
			filled = true // this one stays
		}
		to := p.slice(at, d)
		if d.was == nil || !same(d.was, to) {
			p.applied = append(p.applied, Change{Was: d.was, To: to, Remote: true})
		}
	}
}

// slice is what a draft is to be.
func (p *planner) slice(at place, d *sliceDraft) *discoveryv1.EndpointSlice {
	svc := p.Service
	to := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: svc.Namespace, Labels: labels(svc, at.cluster),
			// It does not block the deletion of its owner, for which some API servers want one more right.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: svc.Name, UID: svc.UID, Controller: new(true)}},
		},
		AddressType: at.family, Endpoints: d.endpoints, Ports: d.ports,
	}
	if d.was != nil {
		to.Name, to.UID = d.was.Name, d.was.UID
		return to
	}
	to.Name = nameOf(svc, at, func(name string) bool { return p.names[name] || p.Taken != nil && p.Taken(name) })
	p.names[to.Name] = true
	return to
}

// same reports whether a slice is already correct, as far as this package decides: the owner is in the label
// [LabelOwner], and annotations belong to other writers.
func same(was, to *discoveryv1.EndpointSlice) bool {
	return maps.Equal(was.Labels, to.Labels) &&
		slices.EqualFunc(was.Ports, to.Ports, func(a, b discoveryv1.EndpointPort) bool { return equality.Semantic.DeepEqual(a, b) }) &&
		slices.EqualFunc(was.Endpoints, to.Endpoints, func(a, b discoveryv1.Endpoint) bool { return equality.Semantic.DeepEqual(a, b) })
}
