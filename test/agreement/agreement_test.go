package agreement

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asker is the place of the clients of all servers.
var asker = backends.Asker{Zone: "a", Node: "n"}

// TestAllSendClientsToTheSameBackends changes random services repeatedly, and compares each server's answers about them
// with the choice.
func TestAllSendClientsToTheSameBackends(t *testing.T) {
	t.Parallel()
	seed, worlds := rand.Uint64(), 1000
	if testing.Short() {
		worlds = 200
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	w := viewtest.New(t)
	w.Play(t, "cluster east\ncluster north\ncluster west")
	w.Play(t, "address east 10.0.0.1 shop/a\naddress east fd00::5 shop/a\naddress north 10.0.0.2 shop/b\naddress north fd00::6 shop/b\naddress north 10.0.0.3 shop/b")
	ask, kubernetes := start(t, w), make(written)
	for n := range worlds {
		s := randomPart(rng)
		w.Apply(s)
		g, _, _ := w.View.Services.Global().Get(w.View.DB.ReadTxn(), services.GlobalByName(s.Namespace, s.Name))
		one, all := backends.Choose(g, backends.ParsePort("http"), asker), backends.Choose(g, backends.Port{}, asker)
		pods := func(c backends.Choice) backends.Choice { return c.ByPod(namespace, w.View.Pod) }
		shared := g != nil && g.Shared()
		for what, c := range map[string]struct{ got, want []string }{
			"/v1/backends":                  {ask.api(s.Name, "http"), lines(one)},
			"/v1/backends, all ports":       {ask.api(s.Name, ""), lines(all)},
			"a template":                    {ask.template(s.Name), lines(one)},
			"Prometheus":                    {ask.prometheus(s.Name), lines(pods(all))},
			"DNS, addresses":                {ask.addresses(s.Name), now(all, shared, func(b backends.Backend) []string { return []string{b.IP.String()} })},
			"DNS, targets":                  {ask.targets(s.Name, "_http._tcp."), now(one, shared, sockets)},
			"DNS, targets of a port of few": {ask.targets(s.Name, "_metrics._tcp."), now(backends.Choose(g, backends.ParsePort("metrics"), asker), shared, sockets)},
			"xDS":                           {ask.xds(s.Name, lines(pods(one))), lines(pods(one))},
			"EndpointSlices":                {kubernetes.follow(service(s.Name), g), remote(backends.Choose(g, backends.Port{}, backends.Asker{}))}, // without a zone: for all nodes
		} {
			if !slices.Equal(c.got, c.want) {
				t.Fatalf("seed %d, world %d: %s of %s\ngot  %q\nwant %q", seed, n, what, s.Name, c.got, c.want)
			}
		}
	}
}

// lines are the endpoints of a choice, sorted: its group, its cluster and zone, its address and port,
// and whether it drains.
func lines(c backends.Choice) (all []string) {
	for i, g := range c.Groups {
		for _, b := range g.Backends {
			for _, p := range b.Ports {
				all = append(all, line(i, b.Cluster, b.Zone, endpointOf(b, p.Port), false))
			}
		}
		for _, b := range g.Draining {
			for _, p := range b.Ports {
				all = append(all, line(i, b.Cluster, b.Zone, endpointOf(b, p.Port), true))
			}
		}
	}
	slices.Sort(all)
	return all
}

// endpointOf are the addresses of a backend with a port: two for a pod with two addresses, if that is one endpoint.
func endpointOf(b backends.Backend, port uint16) string {
	text := netip.AddrPortFrom(b.IP, port).String()
	if b.Other.IsValid() {
		text += " " + netip.AddrPortFrom(b.Other, port).String()
	}
	return text
}

func line(group int, cluster, zone, socket string, draining bool) string {
	return fmt.Sprintf("%d %s/%s %s draining=%t", group, cluster, zone, socket, draining)
}

// now is the DNS answer with the backends of new connections, sorted: only shared services have names of the mesh.
func now(c backends.Choice, shared bool, of func(backends.Backend) []string) (all []string) {
	if !shared {
		return nil
	}
	for _, b := range c.Now() {
		all = append(all, of(b)...)
	}
	slices.Sort(all)
	return all
}

func sockets(b backends.Backend) (all []string) {
	for _, p := range b.Ports {
		all = append(all, netip.AddrPortFrom(b.IP, p.Port).String())
	}
	return all
}

// names are those of the services, all in one namespace.
var names = []string{"cart", "stock", "toys"}

const namespace = "shop"

// randomPart is a cluster's new part of a service, with addresses that others may have too.
func randomPart(rng *rand.Rand) *services.Service {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	s := &services.Service{
		Cluster: pick(viewtest.Own, "east", "north", "west"), Namespace: namespace, Name: pick(names...), Source: wire.SourceClusterMesh,
		Shared: rng.IntN(6) > 0, IncludeExternal: rng.IntN(5) > 0,
	}
	if s.Cluster == viewtest.Own {
		s.Source, s.Affinity = wire.SourceLocal, wire.Affinity(pick(string(wire.AffinityNone), "local", "remote"))
	} else {
		s.Use = services.BackendUse(max(0, rng.IntN(7)-3))
	}
	for n := range 6 {
		if rng.IntN(3) > 0 {
			continue
		}
		b := services.Backend{IP: netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", n+1)), Zone: pick("", "a", "b"), Node: pick("", "n", "m")}
		if n > 3 {
			b.IP = netip.MustParseAddr(fmt.Sprintf("fd00::%d", n+1))
		}
		if rng.IntN(5) > 0 {
			b.Ports = append(b.Ports, services.Port{Name: "http", Protocol: "TCP", Port: uint16(8080 + rng.IntN(2))})
		}
		if rng.IntN(2) > 0 {
			b.Ports = append(b.Ports, services.Port{Name: "metrics", Protocol: "TCP", Port: 9090})
		}
		b.Conditions = [...]services.Conditions{0, 0, 0, services.NotReady | services.IsTerminating, services.NotReady | services.NotServing}[rng.IntN(5)]
		s.Backends = append(s.Backends, b)
	}
	return s
}
