package interop

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Difference is an object that is not what it must be.
type Difference struct {
	Kind model.Kind
	Name string
	Text string // what differs, field by field
}

func (d Difference) String() string { return fmt.Sprintf("%s %s: %s", d.Kind, d.Name, d.Text) }

// Compare compares objects field by field with the wanted ones. The caller leaves out of want
// the fields that the readers of a kind do not keep.
func Compare(want, got model.Objects) []Difference {
	var found []Difference
	wants, gots := want.Named(), got.Named()
	for _, kind := range model.Kinds() {
		for _, name := range slices.Sorted(maps.Keys(wants[kind])) {
			object, ok := gots[kind][name]
			if !ok {
				found = append(found, Difference{kind, name, "is missing"})
			} else if text := diff(wants[kind][name], object); text != "" {
				found = append(found, Difference{kind, name, text})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(gots[kind])) {
			if _, ok := wants[kind][name]; !ok {
				found = append(found, Difference{kind, name, "should not be there"})
			}
		}
	}
	return found
}

// diff says what differs, in words. Most objects are equal to the last nil, which is
// found out much faster.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, same()...)
}

// Same returns an error if the objects are not the wanted ones: how many differ, and one of them.
func Same(want, got model.Objects) error {
	for _, kind := range model.Kinds() {
		if w, g := Count(want, kind), Count(got, kind); w != g {
			return fmt.Errorf("there are %d %s, there must be %d", g, kind, w)
		}
	}
	if d := Compare(want, got); len(d) > 0 {
		return fmt.Errorf("%d of %d objects differ, such as %s", len(d), want.Len(), d[0])
	}
	return nil
}

// same are options of cmp: nil equals empty, and addresses and prefixes compare with ==.
func same() []cmp.Option {
	return []cmp.Option{cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})}
}

// Count returns how many objects of the kind there are.
func Count(o model.Objects, kind model.Kind) int { return len(o.Named()[kind]) }

// KeptByCilium returns the part of the objects that an agent of Cilium keeps: the source of every
// node is the mesh, services that are not shared are left out, and addresses lose
// the fields of ip entries that are only for people (spec wire.md §1.2, §1.7, §4.4).
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
	return slices.SortedFunc(maps.Values(byName), func(a, b model.NamedPort) int { return strings.Compare(a.Name, b.Name) })
}
