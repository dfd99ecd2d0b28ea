package codec

import (
	"slices"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// difference is a part of the objects that need not arrive as it was written.
type difference struct {
	kind      model.Kind
	before    string            // releases before this one; empty is all
	direction interop.Direction // empty is both
	reason    string
	expect    func(*model.Objects) // changes the written objects to those that arrive
}

func notKept() []difference {
	return []difference{
		{
			kind: model.ClusterConfigs, before: "1.17", reason: "service exports came with 1.17",
			expect: each(configs, func(c *model.ClusterConfig) { c.ServiceExportsEnabled = nil }),
		},
		{
			kind: model.ClusterConfigs, before: "1.20", reason: "endpoint slices came with 1.20",
			expect: each(configs, func(c *model.ClusterConfig) { c.EndpointSlicesExportMode = "" }),
		},
		{
			kind: model.Services, before: "1.19", reason: "zones of backends came with 1.19",
			expect: each(services, func(s *model.Service) { s.Zones = nil }),
		},
		{
			kind: model.ServiceExports, before: "1.18", reason: "labels and annotations of exports came with 1.18",
			expect: each(exports, func(e *model.ServiceExport) { e.Labels, e.Annotations = nil, nil }),
		},
		{
			kind: model.ServiceExports, before: "1.19", reason: "address families and traffic policies of exports came with 1.19",
			expect: each(exports, func(e *model.ServiceExport) {
				e.IPFamilies, e.InternalTrafficPolicy, e.TrafficDistribution = nil, nil, nil
			}),
		},
		{
			kind: model.Addresses, before: "1.19", reason: "service accounts came with 1.19",
			expect: each(addresses, func(a *model.Address) { a.ServiceAccount = "" }),
		},
		{
			kind: model.Addresses, direction: interop.TheyWrite,
			reason: "readers ignore metadata and service accounts (wire.md §1.7)",
			expect: each(addresses, func(a *model.Address) { a.Metadata, a.ServiceAccount = "", "" }),
		},
		{
			kind: model.Addresses, direction: interop.TheyWrite,
			reason: "a remote's host, 1, is a remote node, 6 (wire.md §1.7)",
			expect: each(addresses, func(a *model.Address) {
				if a.Identity == 1 {
					a.Identity = 6
				}
			}),
		},
	}
}

// arriving changes objects of the kind to what the reader keeps of them.
func arriving(o *model.Objects, release string, kind model.Kind, d interop.Direction) {
	for _, n := range notKept() {
		if n.kind == kind && (n.before == "" || interop.Older(release, n.before)) && (n.direction == "" || n.direction == d) {
			n.expect(o)
		}
	}
}

func nodes(o *model.Objects) *[]model.Node                   { return &o.Nodes }
func configs(o *model.Objects) *[]model.ClusterConfig        { return &o.ClusterConfigs }
func services(o *model.Objects) *[]model.Service             { return &o.Services }
func endpointSlices(o *model.Objects) *[]model.EndpointSlice { return &o.EndpointSlices }
func exports(o *model.Objects) *[]model.ServiceExport        { return &o.ServiceExports }
func addresses(o *model.Objects) *[]model.Address            { return &o.Addresses }

// each changes every object of a list, which is copied before.
func each[T any](list func(*model.Objects) *[]T, change func(*T)) func(*model.Objects) {
	return func(o *model.Objects) {
		objects := list(o)
		*objects = slices.Clone(*objects)
		for i := range *objects {
			change(&(*objects)[i])
		}
	}
}
