package interop

import (
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// KeptByCilium returns what an agent of Cilium keeps of the objects: nodes are of the
// mesh whoever wrote them, services that are not shared are none, and addresses lose
// what ip entries have for people alone (spec wire.md §1.2, §1.7, §4.4).
func KeptByCilium(o model.Objects) model.Objects {
	kept := model.Objects{EndpointSlices: o.EndpointSlices, ServiceExports: o.ServiceExports, Identities: o.Identities}
	for _, n := range o.Nodes {
		n.Source = "clustermesh"
		kept.Nodes = append(kept.Nodes, n)
	}
	for _, s := range o.Services {
		if s.Shared {
			kept.Services = append(kept.Services, s)
		}
	}
	for _, a := range o.Addresses {
		a = keptAddress(a)
		a.Cluster = "" // one cache for all clusters
		a.NamedPorts = keptPorts(a.NamedPorts)
		kept.Addresses = append(kept.Addresses, a)
	}
	return kept
}

// KeptByUs returns what this project's reader of entries keeps of the objects.
func KeptByUs(o model.Objects) model.Objects {
	o.Addresses = slices.Clone(o.Addresses)
	for i := range o.Addresses {
		o.Addresses[i] = keptAddress(o.Addresses[i])
	}
	return o
}

func keptAddress(a model.Address) model.Address {
	a.Metadata, a.ServiceAccount = "", ""
	if a.Identity == 1 { // the host of another cluster is a remote node
		a.Identity = 6
	}
	return a
}

// keptPorts are the ports by name, without those of any protocol: of several with
// the name, the last one.
func keptPorts(ports []model.NamedPort) []model.NamedPort {
	byName := map[string]model.NamedPort{}
	for _, p := range ports {
		if p.Protocol != "ANY" {
			p.Name = strings.ToLower(p.Name)
			byName[p.Name] = p
		}
	}
	var kept []model.NamedPort
	for _, p := range byName {
		kept = append(kept, p)
	}
	slices.SortFunc(kept, func(a, b model.NamedPort) int { return strings.Compare(a.Name, b.Name) })
	return kept
}
