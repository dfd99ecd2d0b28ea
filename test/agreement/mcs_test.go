package agreement

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
)

// TestClientsOfAnImportedServiceAreSentToTheSameBackends changes the exports of random clusters repeatedly. Each
// cluster executes its plans of the MCS API, and the own one also those of EndpointSlices. The view reads the entries
// that they publish. Each cluster's objects for the import are compared with its exports, and the own cluster's slices
// and its servers' answers with the choice and the import.
func TestClientsOfAnImportedServiceAreSentToTheSameBackends(t *testing.T) {
	t.Parallel()
	worlds := 1000
	if testing.Short() {
		worlds = 200
	}
	for _, families := range [][]string{{"IPv4"}, {"IPv6"}, {"IPv4", "IPv6"}, {"IPv6", "IPv4"}} {
		t.Run(strings.Join(families, ","), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			m := newImports(t, families)
			rng := rand.New(rand.NewPCG(seed, 0))
			for n := range worlds / 4 {
				name := names[rng.IntN(len(names))]
				all := m.clusters[name]
				all[rng.IntN(len(all))].randomize(rng, name)
				m.publish(name)
				for what, c := range m.compare(name) {
					if !slices.Equal(c.got, c.want) {
						t.Fatalf("seed %d, world %d: %s of %s\ngot  %q\nwant %q", seed, n, what, name, c.got, c.want)
					}
				}
			}
		})
	}
}

// imports are the services of one namespace in clusters with the MCS API, as the own one, the first, sees them.
type imports struct {
	t          *testing.T
	world      *viewtest.World
	ask        *servers
	clusters   map[string][]*objects // by service
	kubernetes written               // the own cluster's slices of remote backends
}

func newImports(t *testing.T, families []string) *imports {
	t.Helper()
	w := viewtest.New(t)
	w.Play(t, "cluster east\ncluster north\ncluster west")
	m := &imports{t: t, world: w, ask: start(t, w), clusters: make(map[string][]*objects), kubernetes: make(written)}
	for _, name := range names {
		for i, c := range []objects{
			{cluster: wire.ClusterInfo{Name: viewtest.Own}, families: families},
			{cluster: wire.ClusterInfo{Name: "east"}, families: []string{"IPv4"}},
			{cluster: wire.ClusterInfo{Name: "north"}, families: []string{"IPv4", "IPv6"}},
			{cluster: wire.ClusterInfo{Name: "west"}, families: []string{"IPv6", "IPv4"}},
		} {
			c.cluster.ID = uint32(i + 1)
			m.clusters[name] = append(m.clusters[name], &c)
		}
	}
	return m
}

// publish executes the plans of all clusters for a service, and updates the view.
func (m *imports) publish(name string) {
	var exports []*services.Export
	for _, o := range m.clusters[name] {
		ch := store.Change[services.Export]{Name: namespace + "/" + name, New: o.exported()}
		if ch.New != nil {
			exports = append(exports, ch.New)
		} else {
			ch.Old = &services.Export{Cluster: o.cluster.Name, Namespace: namespace, Name: name}
		}
		m.world.View.Services.ApplyExports([]store.Change[services.Export]{ch})
	}
	for _, o := range m.clusters[name] {
		o.carryOut(m.t, name, exports)
		m.show(o, name, o.part(o.service, o.slices))
		m.show(o, wire.DerivedServiceName(namespace, name), o.part(o.derived, o.copies))
	}
}

func (m *imports) show(o *objects, name string, part *services.Service) {
	ch := store.Change[services.Service]{Name: namespace + "/" + name, New: part}
	if part == nil {
		ch.Old = &services.Service{Cluster: o.cluster.Name, Namespace: namespace, Name: name}
	}
	m.world.View.Services.Apply([]store.Change[services.Service]{ch})
}

func (m *imports) global(name string) *services.Global {
	g, _, _ := m.world.View.Services.Global().Get(m.world.View.DB.ReadTxn(), services.GlobalByName(namespace, name))
	return g
}

type comparison struct{ got, want []string }

// compare returns the answers about a service, with the wanted ones.
func (m *imports) compare(name string) map[string]comparison {
	derived, own := wire.DerivedServiceName(namespace, name), m.clusters[name][0]
	g := m.global(derived)
	all := map[string]comparison{"/v1/backends": {m.ask.api(derived, ""), lines(backends.Choose(g, backends.Port{}, asker))}}
	for _, o := range m.clusters[name] {
		all["the part of "+o.cluster.Name] = comparison{partOf(g, o), o.offers(o.imported, true)}
	}
	slicesOf := slices.Clone(own.copies)
	if own.derived == nil { // the slices go with their owner
		delete(m.kubernetes, derived)
	} else {
		m.kubernetes.follow(own.derived, g)
		slicesOf = append(slicesOf, m.kubernetes[derived]...)
	}
	for reader, labels := range map[string][2]string{"kube-proxy": {discoveryv1.LabelServiceName, derived}, "CoreDNS": {mcs.LabelServiceName, name}} {
		read := slices.DeleteFunc(slices.Clone(slicesOf), func(s *discoveryv1.EndpointSlice) bool { return s.Labels[labels[0]] != labels[1] })
		all["slices, for "+reader] = comparison{linesOfSlices(read), slicesWanted(own, g)}
	}
	var strays []string // empty ones included
	for _, s := range slicesOf {
		if !slices.Contains(own.supported(own.imported), string(s.AddressType)) {
			strays = append(strays, s.Name)
		}
	}
	all["slices of a family that the import lacks"] = comparison{strays, nil}
	m.compareNames(all, name, own.imported, g)
	return all
}

// compareNames compares DNS with the import.
func (m *imports) compareNames(all map[string]comparison, name string, im *local.ServiceImport, derived *services.Global) {
	g := m.global(name)
	if im != nil && im.Annotations[mcs.AnnotationDerived] != "" || g == nil || !g.Shared() {
		g = derived // unless no import is usable, and the name belongs to another service
	}
	shared := g != nil && g.Shared() && (im != nil || g != derived)
	all["DNS, addresses"] = comparison{m.ask.addresses(name), now(backends.Choose(g, backends.Port{}, asker), shared, func(b backends.Backend) []string { return []string{b.IP.String()} })}
	if im != nil && len(im.Spec.IPs) > 0 {
		all["DNS, addresses"] = comparison{all["DNS, addresses"].got, slices.Sorted(slices.Values(im.Spec.IPs))}
	}
	for _, label := range []string{"_http._tcp.", "_metrics._tcp.", "_web._tcp.", "_dns._udp.", "_unnamed-tcp-80._tcp."} {
		port, protocol, _ := strings.Cut(strings.Trim(label, "_."), "._")
		want := now(backends.Choose(g, backends.NamedPort(port, strings.ToUpper(protocol)), asker), shared, sockets)
		if im != nil && len(im.Spec.IPs) > 0 {
			want = socketsOf(im, port, protocol)
		}
		all["DNS, targets of "+label] = comparison{m.ask.targets(name, label), want}
	}
}

// socketsOf are the addresses of an import with a named port.
func socketsOf(im *local.ServiceImport, name, protocol string) (all []string) {
	for _, p := range im.Spec.Ports {
		for _, ip := range im.Spec.IPs {
			if p.Name == name && strings.EqualFold(string(p.Protocol), protocol) {
				all = append(all, net.JoinHostPort(ip, fmt.Sprint(p.Port)))
			}
		}
	}
	slices.Sort(all)
	return all
}

// slicesWanted are the lines of the slices that the derived Service should have: all endpoints that the own cluster
// offers, and of the remote endpoints of its families the chosen ones, if the import has any.
func slicesWanted(own *objects, g *services.Global) []string {
	all := own.offers(own.imported, false)
	if own.imported == nil || own.imported.Status.EndpointSliceObjects != mcs.SlicesPresent {
		return all
	}
	for _, line := range remote(backends.Choose(g, backends.Port{}, backends.Asker{})) {
		if slices.Contains(own.supported(own.imported), familyOf(strings.Fields(line)[2])) {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

func familyOf(address string) string {
	if strings.Contains(address, ":") {
		return services.IPv6
	}
	return services.IPv4
}

// supported are the families of a service in a cluster: those on which all clusters agree, as far as the cluster has
// them.
func (o *objects) supported(im *local.ServiceImport) (all []string) {
	for _, family := range o.families {
		agreed := len(im.Spec.IPFamilies) == 0
		for _, f := range im.Spec.IPFamilies {
			agreed = agreed || string(f) == family
		}
		if agreed {
			all = append(all, family)
		}
	}
	return all
}

// offers are a cluster's endpoints for an import: those of its export, if its Service has a port on which all clusters
// agree (mcs.md B, port traffic, local backends).
func (o *objects) offers(im *local.ServiceImport, usable bool) (all []string) {
	if im == nil || o.exported() == nil {
		return nil
	}
	for _, s := range o.slices {
		if !slices.Contains(o.supported(im), string(s.AddressType)) {
			continue
		}
		var ports []string
		for _, p := range s.Ports {
			for _, own := range o.service.Spec.Ports {
				for _, agreed := range im.Spec.Ports {
					if *p.Name != own.Name || own.Name != agreed.Name || own.Port != agreed.Port || own.Protocol != agreed.Protocol {
						continue
					}
					name := own.Name
					if name == "" && len(im.Spec.Ports) > 1 {
						name = fmt.Sprintf("unnamed-%s-%d", strings.ToLower(string(own.Protocol)), own.Port)
					}
					ports = append(ports, fmt.Sprintf("%s=%d", name, *p.Port))
				}
			}
		}
		if len(ports) == 0 && len(s.Ports) > 0 {
			continue
		}
		for _, e := range s.Endpoints {
			if !usable || *e.Conditions.Ready || *e.Conditions.Serving {
				all = append(all, endpoint(useOf(e.Conditions), o.cluster.Name, e.Addresses[0], ports))
			}
		}
	}
	slices.Sort(all)
	return all
}

// partOf is a cluster's part of a service in the view.
func partOf(g *services.Global, o *objects) (all []string) {
	part := g.Part(o.cluster.Name)
	if part == nil {
		return nil
	}
	for _, b := range part.Backends {
		var ports []string
		for _, p := range b.Ports {
			ports = append(ports, fmt.Sprintf("%s=%d", p.Name, p.Port))
		}
		ready, terminating := b.Ready(), b.Terminating()
		all = append(all, endpoint(useOf(discoveryv1.EndpointConditions{Ready: &ready, Terminating: &terminating}), o.cluster.Name, b.IP.String(), ports))
	}
	slices.Sort(all)
	return all
}
