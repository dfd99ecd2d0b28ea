package backends_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// part returns the part of a cluster in the service ns/web, from the notation of these tests: backends are ADDRESS with
// their properties, as "1 2-terminating 3@zone 4/node".
func part(cluster, of string, change ...func(*services.Service)) *services.Service {
	s := &services.Service{Cluster: cluster, Namespace: "ns", Name: "web", Shared: true, IncludeExternal: true, Source: wire.SourceClusterMesh}
	if cluster == "own" {
		s.Source = wire.SourceLocal
	}
	for _, text := range strings.Fields(of) {
		b := services.Backend{Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}, {Name: "metrics", Protocol: "TCP", Port: 9090}}}
		text, b.Node, _ = strings.Cut(text, "/")
		text, b.Zone, _ = strings.Cut(text, "@")
		text, state, _ := strings.Cut(text, "-")
		switch state {
		case "terminating":
			b.Conditions = services.NotReady | services.IsTerminating
		case "dead":
			b.Conditions = services.NotReady | services.NotServing
		}
		b.IP = netip.MustParseAddr("10.0.0." + text)
		s.Backends = append(s.Backends, b)
	}
	slices.SortFunc(s.Backends, func(a, b services.Backend) int { return a.IP.Compare(b.IP) })
	for _, f := range change {
		f(s)
	}
	return s
}

func use(u services.BackendUse) func(*services.Service) {
	return func(s *services.Service) { s.Use = u }
}

func affinity(a wire.Affinity) func(*services.Service) {
	return func(s *services.Service) { s.Affinity = a }
}

func notGlobal(s *services.Service) { s.Shared, s.IncludeExternal = false, false }

// show formats a choice in the notation of these tests: groups are separated by " | ", draining backends are in
// brackets.
func show(c backends.Choice) string {
	var groups []string
	for _, g := range c.Groups {
		var all []string
		for _, b := range g.Backends {
			all = append(all, b.Cluster+":"+strings.TrimPrefix(b.IP.String(), "10.0.0."))
		}
		for _, b := range g.Draining {
			all = append(all, "["+b.Cluster+":"+strings.TrimPrefix(b.IP.String(), "10.0.0.")+"]")
		}
		groups = append(groups, strings.Join(all, " "))
	}
	return strings.Join(groups, " | ")
}

func TestChoose(t *testing.T) {
	t.Parallel()
	own, east, west := "own", "east", "west"
	for _, test := range []struct {
		name  string
		from  backends.Asker
		parts []*services.Service
		want  string
	}{
		{"no affinity: all alike", backends.Asker{}, []*services.Service{part(own, "1"), part(east, "3 2")}, "east:2 east:3 own:1"},
		{"without a service of the own cluster", backends.Asker{}, []*services.Service{part(west, "4"), part(east, "2")}, "east:2 west:4"},
		{"affinity local", backends.Asker{}, []*services.Service{part(own, "1", affinity("local")), part(east, "2")}, "own:1 | east:2"},
		{"affinity remote", backends.Asker{}, []*services.Service{part(own, "1", affinity("remote")), part(east, "2")}, "east:2 | own:1"},
		{"affinity local, none local", backends.Asker{}, []*services.Service{part(own, "", affinity("local")), part(east, "2")}, "east:2"},
		{"not global", backends.Asker{}, []*services.Service{part(own, "1", notGlobal), part(east, "2")}, "own:1"},
		{"not shared", backends.Asker{}, []*services.Service{part(own, "1"), part(east, "2", notGlobal), part(west, "4")}, "own:1 west:4"},
		{"demoted last", backends.Asker{}, []*services.Service{part(own, "1"), part(east, "2", use(services.Demoted))}, "own:1 | east:2"},
		{"demoted after the other side", backends.Asker{}, []*services.Service{part(own, "1", affinity("remote")), part(east, "2", use(services.Demoted)), part(west, "4")}, "west:4 | own:1 | east:2"},
		{"demoted when nobody else has one", backends.Asker{}, []*services.Service{part(own, "1-dead"), part(east, "2", use(services.Demoted))}, "east:2"},
		{"withdrawn", backends.Asker{}, []*services.Service{part(own, "1"), part(east, "2", use(services.Withdrawn))}, "own:1"},
		{"withdrawn when nobody else has one", backends.Asker{}, []*services.Service{part(own, ""), part(east, "2", use(services.Withdrawn))}, "east:2"},
		{"withheld in any case", backends.Asker{}, []*services.Service{part(own, ""), part(east, "2", use(services.Withheld))}, ""},
		{"terminating drains", backends.Asker{}, []*services.Service{part(own, "1-terminating 5"), part(east, "2-terminating")}, "own:5 [east:2] [own:1]"},
		{"all of a side terminate", backends.Asker{}, []*services.Service{part(own, "1-terminating", affinity("local")), part(east, "2")}, "[own:1] | east:2"},
		{"all of the remote side terminate", backends.Asker{}, []*services.Service{part(own, "1", affinity("remote")), part(east, "2-terminating")}, "[east:2] | own:1"},
		{"all terminate", backends.Asker{}, []*services.Service{part(own, "1-terminating", affinity("local")), part(east, "2-terminating")}, "own:1 | east:2"},
		{"neither ready nor serving", backends.Asker{}, []*services.Service{part(own, "1-dead"), part(east, "2")}, "east:2"},
		{"zone within a side", backends.Asker{Zone: "a"}, []*services.Service{part(own, "1@b 5@a", affinity("local")), part(east, "2@a 3")}, "own:5 | own:1 | east:2 | east:3"},
		{"zone across clusters", backends.Asker{Zone: "a"}, []*services.Service{part(own, "1@b"), part(east, "2@a 3")}, "east:2 | east:3 own:1"},
		{"no zone, no preference", backends.Asker{}, []*services.Service{part(own, "1@b"), part(east, "2@a 3")}, "east:2 east:3 own:1"},
		{"node before zone", backends.Asker{Zone: "a", Node: "n"}, []*services.Service{part(own, "1@a 5@a/n 6@b"), part(east, "2@a/n")}, "own:5 | east:2 own:1 | own:6"},
		{"an address of two clusters", backends.Asker{}, []*services.Service{part(own, "1", affinity("local")), part(east, "1 2")}, "own:1 | east:2"},
		{"an address that terminates in one of two", backends.Asker{}, []*services.Service{part(own, "1-terminating 5", affinity("local")), part(east, "1")}, "own:5 | east:1"},
		{"no backends", backends.Asker{}, []*services.Service{part(own, "")}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := show(backends.Choose(services.Merge(test.parts), backends.Port{}, test.from)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if c := backends.Choose(nil, backends.Port{}, backends.Asker{}); len(c.Groups) > 0 {
		t.Errorf("nothing has backends: %+v", c)
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	withPorts := func(ports ...services.Port) func(*services.Service) {
		return func(s *services.Service) { s.Ports = ports }
	}
	tcp := func(name string, number uint16) services.Port {
		return services.Port{Name: name, Protocol: "TCP", Port: number}
	}
	g := services.Merge([]*services.Service{
		part("own", "1", withPorts(tcp("http", 80))),
		part("east", "2", withPorts(tcp("http", 81), tcp("metrics", 80))),
		part("west", "", withPorts(tcp("metrics", 82), services.Port{Name: "http", Protocol: "UDP", Port: 83}, tcp("metrics", 83))),
	})
	g.Part("east").Backends[0].Ports = []services.Port{tcp("dns", 53), {Name: "dns-udp", Protocol: "UDP", Port: 53}, tcp("http", 8081)}
	for port, want := range map[string]string{
		"":         "east:[dns/53 dns-udp/53 http/8081] own:[http/8080 metrics/9090]",
		"http":     "east:[http/8081] own:[http/8080]",
		"metrics":  "own:[metrics/9090]",
		"80":       "east:[http/8081] own:[http/8080]", // of the own cluster's service
		"81":       "east:[http/8081] own:[http/8080]", // the own service does not have it, another cluster's does
		"82":       "own:[metrics/9090]",
		"53":       "east:[dns/53]", // no service has it, the backends do; TCP takes precedence
		"53/udp":   "east:[dns-udp/53]",
		"53/SCTP":  "",
		"83":       "own:[metrics/9090]", // TCP takes precedence over the UDP port listed first
		"83/UDP":   "",                   // the backends have that name with another protocol
		"http/TCP": "east:[http/8081] own:[http/8080]",
		"http/UDP": "",
		"9090":     "own:[metrics/9090]",
		"nothing":  "",
		"0":        "",
		"70000":    "",
	} {
		var got []string
		for _, b := range backends.Choose(g, backends.ParsePort(port), backends.Asker{}).Now() {
			var ports []string
			for _, p := range b.Ports {
				ports = append(ports, fmt.Sprintf("%s/%d", p.Name, p.Port))
			}
			got = append(got, fmt.Sprintf("%s:%s", b.Cluster, ports))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("port %q: %s, want %s", port, text, want)
		}
	}
	if got := backends.Choose(g, backends.NamedPort("dns-udp", "TCP"), backends.Asker{}); len(got.Groups) > 0 {
		t.Errorf("a port with another protocol: %+v", got)
	}
	for _, text := range []string{"", "http", "80", "53/UDP", "dns/TCP"} {
		if p := backends.ParsePort(text); p.String() != text || p.Any() != (text == "") {
			t.Errorf("%q is read as %q, any %t", text, p, p.Any())
		}
	}
}

// TestChoiceEqualsModel compares the choice for random services with a model of the rules, address by address, and with
// the selection that is shown to users.
func TestChoiceEqualsModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		g := services.Merge(randomParts(rng))
		from := backends.Asker{}
		if rng.IntN(2) == 0 {
			from = backends.Asker{Zone: "a", Node: []string{"", "n"}[rng.IntN(2)]}
		}
		c := backends.Choose(g, backends.Port{}, from)
		if got, want := show(c), modelOf(g, from); got != want {
			t.Fatalf("seed %d: %s\ngot  %s\nwant %s", seed, texts(g), got, want)
		}
		selected := make(map[netip.Addr]bool)
		steadySelected := false
		selection := g.Selection()
		for part, b := range g.Backends() {
			if selection.Takes(part, b) {
				selected[b.IP] = true
				steadySelected = steadySelected || !b.Terminating()
			}
		}
		for _, b := range c.Now() {
			if steadySelected && !selected[b.IP] {
				t.Fatalf("seed %d: %s: connections go to %s, which is not selected", seed, texts(g), b.IP)
			}
		}
		if len(selected) > 0 && len(c.Now()) == 0 {
			t.Fatalf("seed %d: %s: connections go nowhere", seed, texts(g))
		}
	}
}

// randomParts returns the parts of a service in up to four clusters, with some addresses in common.
func randomParts(rng *rand.Rand) []*services.Service {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	var all []*services.Service
	for _, cluster := range []string{"own", "east", "north", "west"} {
		if rng.IntN(4) == 0 {
			continue
		}
		var texts []string
		for n := range 6 {
			if rng.IntN(3) == 0 {
				texts = append(texts, fmt.Sprint(n+1)+pick("", "", "-terminating", "-dead")+pick("", "@a", "@b")+pick("", "/n", "/m"))
			}
		}
		s := part(cluster, strings.Join(texts, " "))
		s.Shared, s.IncludeExternal = rng.IntN(5) > 0, rng.IntN(5) > 0
		if cluster == "own" {
			s.Affinity = wire.Affinity(pick(string(wire.AffinityNone), "local", "remote"))
		} else {
			s.Use = services.BackendUse(max(0, rng.IntN(7)-3))
		}
		all = append(all, s)
	}
	if !slices.ContainsFunc(all, (*services.Service).Offers) {
		return []*services.Service{part("east", "1")}
	}
	return all
}

func texts(g *services.Global) (text string) {
	for _, p := range g.Parts {
		text += fmt.Sprintf("%s shared=%t external=%t %s affinity=%q:", p.Cluster, p.Shared, p.IncludeExternal, p.Use, p.Affinity)
		for _, b := range p.Backends {
			text += fmt.Sprintf(" %s(%d)@%s/%s", b.IP, b.Conditions, b.Zone, b.Node)
		}
		text += "; "
	}
	return text
}

// modelOf computes the choice by its rules, without regard to speed: each backend gets a rank of six digits, and the
// best of each address remains.
func modelOf(g *services.Global, from backends.Asker) string {
	type one struct {
		cluster  string
		ip       netip.Addr
		class    int
		draining int
	}
	var all []one
	for _, p := range g.Parts {
		local := p.Local()
		if !g.InUse(p) || !local && g.Local() != nil && (!g.Shared() || !g.Local().Shared && !g.Local().IncludeExternal) {
			continue
		}
		for _, b := range p.Backends {
			if !b.Usable() {
				continue
			}
			class := 100 * int(p.Use)
			if g.Affinity() == "local" && !local || g.Affinity() == "remote" && local {
				class += 10
			}
			switch {
			case local && from.Node != "" && b.Node == from.Node:
			case from.Zone != "" && b.Zone == from.Zone:
				class++
			default:
				class += 2
			}
			draining := 0
			if b.Terminating() {
				draining = 1
			}
			all = append(all, one{p.Cluster, b.IP, class, draining})
		}
	}
	if !slices.ContainsFunc(all, func(o one) bool { return o.draining == 0 }) {
		for i := range all {
			all[i].draining = 0
		}
	}
	best := make(map[netip.Addr]one)
	for _, o := range all {
		if b, has := best[o.ip]; !has || fmt.Sprint(o.draining, 1000+o.class, o.cluster) < fmt.Sprint(b.draining, 1000+b.class, b.cluster) {
			best[o.ip] = o
		}
	}
	var names []string
	for ip, o := range best {
		name := fmt.Sprintf("%s:%s", o.cluster, strings.TrimPrefix(ip.String(), "10.0.0."))
		if o.draining == 1 {
			name = "[" + name + "]"
		}
		names = append(names, fmt.Sprintf("%d %d %s %s %s", 1000+o.class, o.draining, o.cluster, ip, name))
	}
	slices.Sort(names)
	var text, last string
	for i, n := range names {
		f := strings.Fields(n)
		switch {
		case i == 0:
		case f[0] != last:
			text += " | "
		default:
			text += " "
		}
		text += f[4]
		last = f[0]
	}
	return text
}
