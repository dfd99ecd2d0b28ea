package render_test

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// hostileTexts generates texts that break the syntax of some file, and valid ones that may collide.
func hostileTexts() *rapid.Generator[string] {
	whole := rapid.SampledFrom([]string{
		"shop", "shop-my", "my-shop", "cart", "my-cart", "a", "localhost", "metadata.google.internal", "default", "include", "null", "1e3", "", "A", "é",
		"x {\n server 1.2.3.4;\n}\nserver { listen 81; root /etc; }\nupstream y", "x\nlisten stats\n  bind :1", "n1.east\n1.2.3.4 bank.com", "a\r\nb",
		"$request_body", "%[env(HOME)]", "a\u2028b", "a\u0085b", "a\u202eb", "a\x1b[2Jb", "a\x00b", "a\ufeffb", "a\xffb", "a b", "a\tb", "a;b", "a#b", "a{b", "a}b",
		`a"b`, `a'b`, `a\b`, "a/b", "../b", "-a", "a-", "--", ".", "..", strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a",
	})
	pieces := rapid.SampledFrom([]string{"a", "b", "-", ".", "\n", "\r", " ", "{", "}", ";", "#", "\"", "'", "\\", "$", "%", ":", "\u2029", "\x7f", "\u200f", "0"})
	return rapid.OneOf(whole, whole, rapid.Map(rapid.SliceOfN(pieces, 1, 6), func(all []string) string { return strings.Join(all, "") }))
}

func hostileAddresses() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{
		"10.0.0.1", "10.0.0.2", "fd00::1", "fd00:1::2", "1:fd00::2", "0.0.0.0", "::", "fe80::1%eth0", "fe80::1%x;\n}", "10.0.0.1;\n", "",
	}), hostileTexts())
}

func hostileBackends() *rapid.Generator[api.ChosenBackend] {
	return rapid.Custom(func(t *rapid.T) api.ChosenBackend {
		text := hostileTexts()
		b := api.ChosenBackend{
			IP: hostileAddresses().Draw(t, "ip"), Cluster: rapid.OneOf(rapid.SampledFrom([]string{"east", "east-1", "own"}), text).Draw(t, "cluster"),
			Hostname: text.Draw(t, "hostname"), Zone: text.Draw(t, "zone"), Node: text.Draw(t, "node"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "ports") {
			b.Ports = append(b.Ports, api.Port{
				Name: text.Draw(t, "port"), Protocol: rapid.OneOf(rapid.Just("TCP"), text).Draw(t, "protocol"), Port: rapid.Uint16Range(0, 3).Draw(t, "number"),
			})
		}
		return b
	})
}

// fill gives the mesh hostile contents. An address occurs once in a service, as the agent guarantees.
func (m *mesh) fill(t *rapid.T) {
	text := hostileTexts()
	m.services, m.nodes, m.clusters = []api.Service{}, []api.Node{}, []api.Cluster{}
	clear(m.backends)
	distinct := rapid.SliceOfNDistinct(hostileBackends(), 0, 4, func(b api.ChosenBackend) string { return b.IP })
	m.add("shop", "cart", api.BackendGroup{Backends: distinct.Draw(t, "cart")}) // the service of envoy-eds.tmpl
	for range rapid.IntRange(0, 6).Draw(t, "services") {
		namespace, name := text.Draw(t, "namespace"), text.Draw(t, "name")
		if m.backends[namespace+"/"+name].Name != "" {
			continue
		}
		var groups []api.BackendGroup
		addresses := make(map[string]bool)
		for range rapid.IntRange(0, 2).Draw(t, "groups") {
			g := api.BackendGroup{Use: "full", Side: "any", Near: "anywhere"}
			for i, b := range rapid.SliceOfN(hostileBackends(), 1, 4).Draw(t, "backends") {
				if addresses[b.IP] {
					continue
				}
				addresses[b.IP] = true
				if i == 3 {
					g.Draining = append(g.Draining, b)
				} else {
					g.Backends = append(g.Backends, b)
				}
			}
			groups = append(groups, g)
		}
		m.add(namespace, name, groups...)
	}
	for range rapid.IntRange(0, 4).Draw(t, "nodes") {
		m.nodes = append(m.nodes, api.Node{
			Cluster: rapid.OneOf(rapid.Just("east"), text).Draw(t, "cluster"), Name: text.Draw(t, "node"),
			Addresses: []api.NodeAddress{{Type: rapid.OneOf(rapid.Just("InternalIP"), text).Draw(t, "type"), IP: hostileAddresses().Draw(t, "ip")}},
			PodCIDRs:  []string{text.Draw(t, "network")}, HealthIPs: []string{hostileAddresses().Draw(t, "health")}, BootID: text.Draw(t, "boot"),
			WireguardPublicKey: text.Draw(t, "key"), Labels: map[string]string{text.Draw(t, "label"): text.Draw(t, "value")},
			Annotations: map[string]string{text.Draw(t, "annotation"): text.Draw(t, "text")},
		})
	}
	c := api.Cluster{Name: text.Draw(t, "name"), Message: text.Draw(t, "message"), LastError: text.Draw(t, "error"), Endpoints: []string{text.Draw(t, "endpoint")}}
	c.Refusals = []api.Refusal{{Key: text.Draw(t, "refused"), Message: text.Draw(t, "why"), Remedies: map[string]string{text.Draw(t, "reason"): text.Draw(t, "remedy")}}}
	m.clusters = append(m.clusters, c)
}

const label = `[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?`

// The grammars of the files that the ready templates write.
var (
	nginxFile   = regexp.MustCompile(`^(?:upstream [-a-z0-9]+ \{\n(?:    server 127\.0\.0\.1:9 down;\n|    server [0-9.]+:[1-9]\d*;\n|    server \[[0-9a-f:]+\]:[1-9]\d*;\n|    server [][0-9a-f:.]+:[1-9]\d* backup;\n)+\}\n)*$`)
	haproxyFile = regexp.MustCompile(`^listen mesh-agent-servers\n(?:    [a-z]+[a-z0-9 :./]*\n)+\n(?:backend [-a-z0-9]+\n    balance roundrobin\n(?:    server ` + label + `-[0-9a-f:.]+ [][0-9a-f:.]+:[1-9]\d* (?:check(?: backup)?|weight 0)\n)*\n)*$`)
	hostsFile   = regexp.MustCompile(`^127\.0\.0\.1 localhost\n::1 localhost\n(?:[0-9a-f:.]+ ` + label + `(?:\.` + label + `)+\n)*$`)
	everything  = regexp.MustCompile(`^(?:# [^\n]*\n)*$`)
)

// all prints each text of each object, in lines that are comments.
const all = `{{ range services }}# {{ printf "%+v" . }}
{{ range (backends (printf "%s/%s" .Namespace .Name)).Groups }}# {{ printf "%+v" . }}
{{ end }}{{ end }}{{ range nodes }}# {{ printf "%+v" . }}
{{ end }}{{ range clusters }}# {{ printf "%+v" . }} {{ range .Refusals }}{{ printf "%+v" . }}{{ end }}
{{ end }}`

// TestHostileMeshes: with any contents of remote clusters, each value stays at its place in the file, no two services
// share a name, and each service has one.
func TestHostileMeshes(t *testing.T) {
	t.Parallel()
	m, a := newMesh(t)
	a.file("all.tmpl", all)
	ready := filepath.Join("..", "..", "..", "docs", "templates")
	rapid.Check(t, func(t *rapid.T) {
		m.fill(t)
		args := []string{"--once"}
		for name, path := range map[string]string{"nginx": ready, "haproxy": ready, "hosts": ready, "envoy-eds": ready, "all": a.dir} {
			args = append(args, "-t", filepath.Join(path, name+".tmpl")+"="+filepath.Join(a.dir, name))
		}
		if _, said, err := a.run(t.Context(), args...); err != nil || hasControl(said) {
			t.Fatalf("%v, said %q", err, said)
		}
		for name, grammar := range map[string]*regexp.Regexp{"nginx": nginxFile, "haproxy": haproxyFile, "hosts": hostsFile, "all": everything} {
			if text := a.has(name); !grammar.MatchString(text) || hasControl(text) {
				t.Fatalf("%s:\n%s", name, text)
			}
		}
		m.checkNames(t, a)
		m.checkHosts(t, a.has("hosts"))
		checkEnvoy(t, a.has("envoy-eds"), m.backends["shop/cart"])
	})
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	})
}

var isLabel = regexp.MustCompile(`^` + label + `$`).MatchString

// checkNames compares the names in the files with the services.
func (m *mesh) checkNames(t *rapid.T, a *agent) {
	valid := 0
	for _, s := range m.services {
		if isLabel(s.Namespace) && isLabel(s.Name) {
			valid++
		}
	}
	for file, word := range map[string]string{"nginx": "upstream ", "haproxy": "backend "} {
		names := make(map[string]bool)
		section := make(map[string]bool)
		for line := range strings.Lines(a.has(file)) {
			if name, is := strings.CutPrefix(line, word); is {
				if names[name] {
					t.Fatalf("%s: two services have the name %s", file, name)
				}
				names[name] = true
				clear(section)
			}
			if fields := strings.Fields(line); file == "haproxy" && len(fields) > 1 && fields[0] == "server" {
				if section[fields[1]] {
					t.Fatalf("two servers have the name %s", fields[1])
				}
				section[fields[1]] = true
			}
		}
		if len(names) != valid {
			t.Fatalf("%s has %d names, not %d", file, len(names), valid)
		}
	}
}

// checkHosts: each line is for a node, and each name is below its cluster.
func (m *mesh) checkHosts(t *rapid.T, text string) {
	known := make(map[string]bool)
	for _, n := range m.nodes {
		for _, address := range n.Addresses {
			known[address.IP+" "+n.Name+"."+n.Cluster] = true
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[2:] {
		if !known[line] {
			t.Fatalf("a line of no node: %q", line)
		}
	}
}

// checkEnvoy: the file is YAML, and has only addresses, clusters and zones as values.
func checkEnvoy(t *rapid.T, text string, of api.ServiceBackends) {
	var file struct {
		Resources []struct {
			Name      string `json:"cluster_name"`
			Endpoints []struct {
				Priority  int
				Locality  map[string]string
				Endpoints []struct {
					Endpoint struct {
						Address struct {
							Socket struct {
								Address string
								Port    int `json:"port_value"`
							} `json:"socket_address"`
						}
					}
				} `json:"lb_endpoints"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil || len(file.Resources) != 1 || file.Resources[0].Name != "shop/cart" {
		t.Fatalf("%v\n%s", err, text)
	}
	zones := map[string]bool{"": true}
	for _, g := range of.Groups {
		for _, b := range g.Backends {
			zones[b.Zone] = true
		}
	}
	for _, e := range file.Resources[0].Endpoints {
		if !zones[e.Locality["zone"]] || !isLabel(e.Locality["region"]) || len(e.Locality) != 2 || len(e.Endpoints) == 0 {
			t.Fatalf("%+v\n%s", e, text)
		}
		for _, one := range e.Endpoints {
			if s := one.Endpoint.Address.Socket; s.Port == 0 || !netip.MustParseAddr(s.Address).IsValid() {
				t.Fatalf("%+v\n%s", one, text)
			}
		}
	}
}

// TestWhatIsLeftOutIsReported: it is reported once, with its first example, and valid entries stay.
func TestWhatIsLeftOutIsReported(t *testing.T) {
	t.Parallel()
	m, a := newMesh(t)
	ports := []api.Port{{Name: "http", Protocol: "TCP", Port: 80}}
	good := api.ChosenBackend{IP: "10.0.0.1", Cluster: "east", Ports: ports, Hostname: "web-0", Zone: "a_B.1", Node: "n1.example"}
	bad := []api.ChosenBackend{
		good,
		{IP: "fe80::1%x\n", Cluster: "east", Ports: ports},
		{IP: "10.0.0.2", Cluster: "ea st", Ports: ports},
		{IP: "10.0.0.3", Cluster: "east", Ports: []api.Port{{Name: "http", Protocol: "TCP"}}},
		{IP: "10.0.0.4", Cluster: "east", Ports: ports, Hostname: "a;b", Zone: "a b", Node: "a\nb"},
	}
	m.add("shop", "cart", api.BackendGroup{Backends: bad})
	m.add("shop", "x {\n}")
	m.add("shop\n", "y")
	m.nodes = []api.Node{{
		Name: "n1", Cluster: "east", Addresses: []api.NodeAddress{{Type: "InternalIP", IP: "192.168.1.1"}, {Type: "Internal IP", IP: "192.168.1.2"}, {Type: "ExternalIP", IP: "x"}},
		Labels: map[string]string{"app.example/x": "y", "a b": "c", "d": "\n"}, Annotations: map[string]string{"note": "two\nlines", "\n": "x"},
	}, {Name: "n 2", Cluster: "east"}}
	tmpl := a.file("t", `{{ range services }}{{ .Name }}: {{ range (backends (printf "%s/%s" .Namespace .Name) "http").Now }}{{ .IP }}|{{ .Hostname }}|{{ .Zone }}|{{ .Node }} {{ end }}
{{ end }}{{ range nodes }}{{ .Name }} {{ .Addresses }} {{ .Labels }} {{ .Annotations }}{{ end }}
{{ index (index nodes 0).Labels "missing" }}`)
	_, said, err := a.run(t.Context(), "--once", "-t", tmpl+"="+filepath.Join(a.dir, "out"))
	want := `cart: 10.0.0.1|web-0|a_B.1|n1.example 10.0.0.4||| 
n1 [{InternalIP 192.168.1.1}] map[app.example/x:y] map[note:two\nlines]
`
	if diff := cmp.Diff(want, a.has("out")); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, want := range []string{
		`left out services whose namespace or name is not valid: the first one is "shop/x {\n}"`, `left out backends whose address is not valid: the first one is "fe80::1%x\n"`,
		`left out clusters whose name is not valid: the first one is "ea st"`, `left out ports whose name, number or protocol is not valid: the first one is "http:0/TCP"`,
		`left out hostnames that are not valid: the first one is "a;b"`, `left out zones that are not valid: the first one is "a b"`,
		`left out names of nodes that are not valid: the first one is "a\nb"`, `left out nodes whose name is not valid: the first one is "n 2"`,
		`left out addresses of nodes that are not valid: the first one is "Internal IP 192.168.1.2"`, `left out labels that are not valid`, `left out annotations whose key is not valid: the first one is "\n"`,
	} {
		if n := len(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, want) })); n != 1 {
			t.Errorf("%q was reported %d times in %q", want, n, said)
		}
	}
	if len(lines) != 12 { // and the line about the file
		t.Errorf("said %q", said)
	}
}

// TestNoTwoServicesShareAName tries all short names, including names with ports, and with hyphens anywhere.
func TestNoTwoServicesShareAName(t *testing.T) {
	t.Parallel()
	_, a := newMesh(t)
	names := []string{""}
	for i := 0; i < len(names); i++ {
		if len(names[i]) < 5 {
			names = append(names, names[i]+"a", names[i]+"-")
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isLabel(name) })
	var tmpl strings.Builder
	want := 0
	for _, namespace := range names {
		for _, name := range names {
			fmt.Fprintf(&tmpl, "{{ upstreamName \"%s/%s\" }}\n", namespace, name)
			want++
		}
	}
	for _, port := range []string{`"a"`, `"a-a"`, "80"} {
		fmt.Fprintf(&tmpl, "{{ upstreamName \"a/a-a\" %s }}\n{{ upstreamName \"a-a/a\" %s }}\n", port, port)
		want += 2
	}
	if _, _, err := a.run(t.Context(), "--once", "-t", a.file("t", tmpl.String())+"="+filepath.Join(a.dir, "out")); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for line := range strings.Lines(a.has("out")) {
		got[line] = true
	}
	if len(got) != want || want < 200 {
		t.Errorf("%d names for %d services: %v", len(got), want, slices.Sorted(maps.Keys(got)))
	}
	if text, err := os.ReadFile(filepath.Join(a.dir, "out")); err != nil || regexp.MustCompile(`[^-.a-z0-9\n]`).Match(text) {
		t.Errorf("%v\n%s", err, text)
	}
}
