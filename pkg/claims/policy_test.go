package claims

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const example = `
default: deny
clusters:
  paris:
    id: 3
    networks: [10.3.0.0/16, fd03::/48]
    namespaces: [shop, team-*]
    services: [shop/*]
    identities: [196608-196700, "196999"]
  tokyo: {}
`

func TestPolicyGrants(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(example))
	waittest.Must(t, err)
	g, admitted := p.Of("paris")
	if !admitted || p.Pin("paris") != 3 || p.Pinned(3) != "paris" || p.Pinned(4) != "" {
		t.Errorf("admitted %v, pins %d and %q", admitted, p.Pin("paris"), p.Pinned(3))
	}
	for what, c := range map[string]struct {
		err     error
		granted bool
	}{
		"a pod":                       {g.Address(netip.MustParsePrefix("10.3.1.1/32")), true},
		"the network":                 {g.Address(netip.MustParsePrefix("10.3.0.0/16")), true},
		"a larger one":                {g.Address(netip.MustParsePrefix("10.0.0.0/8")), false},
		"another":                     {g.Address(netip.MustParsePrefix("10.4.1.1/32")), false},
		"IPv6":                        {g.Host(netip.MustParseAddr("fd03::1")), true},
		"another of IPv6":             {g.Host(netip.MustParseAddr("fd04::1")), false},
		"mapped":                      {g.Host(netip.MustParseAddr("::ffff:10.3.0.1")), true},
		"none":                        {g.Host(netip.Addr{}), true},
		"a namespace":                 {g.Namespace("team-a"), true},
		"another namespace":           {g.Namespace("kube-system"), false},
		"no namespace":                {g.Namespace(""), true},
		"a service":                   {g.Service("shop", "web"), true},
		"a service elsewhere":         {g.Service("team-a", "web"), false},
		"a service of kube-system":    {g.Service("kube-system", "dns"), false},
		"an identity":                 {g.Identity(196700), true},
		"another identity":            {g.Identity(196701), false},
		"one by itself":               {g.Identity(196999), true},
		"a reserved one, not by this": {g.Identity(4), true},
	} {
		if (c.err == nil) != c.granted {
			t.Errorf("%s: %v", what, c.err)
		}
	}
	if g, admitted := p.Of("tokyo"); !admitted || g.Address(netip.MustParsePrefix("8.8.8.8/32")) != nil || g.Namespace("x") != nil || g.Service("x", "y") != nil || g.Identity(9999) != nil {
		t.Error("an entry without restrictions restricts")
	}
	if _, admitted := p.Of("evil"); admitted {
		t.Error("a cluster without an entry is admitted")
	}
	if g, admitted := (*Policy)(nil).Of("evil"); !admitted || g.Host(netip.MustParseAddr("1.1.1.1")) != nil {
		t.Error("no policy restricts")
	}
}

func TestPolicyNamesEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`
default: perhaps
clusters:
  Paris: {}
  a: {id: 3, networks: [10.0.0.1/8], namespaces: ["x/y"]}
  b: {id: 3, services: [web], identities: [5-3]}
`))
	for _, want := range []string{
		`line 2: default: "perhaps"`, "line 4: clusters.Paris", "line 5: clusters.a.networks", "line 5: clusters.a.namespaces",
		"line 6: clusters.b.id: 3 is also that of a", "line 6: clusters.b.services", "line 6: clusters.b.identities",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant it to name %s", err, want)
		}
	}
}

// TestMistakesAreSaid: mistakes are reported with their place and the expected value, each on one line.
func TestMistakesAreSaid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "it is empty: want default",
		"\n":                              "it is empty: want default",
		"---":                             "it is empty: want default",
		"# default: deny\n":               "it is empty: want default",
		"{}":                              "it is empty: want default",
		"[]":                              "line 1: the file: it is a list: want default and clusters",
		"clusters:":                       "line 1: clusters: it is empty: want a name with an entry for each cluster",
		"default:":                        "line 1: default: empty: want allow or deny",
		"clusters:\n  a: 7":               "line 2: clusters.a: it is a text: want id, networks",
		"clusters:\n  a:":                 "line 2: clusters.a: it is empty: want id, networks",
		"clusters:\n  a:\n    id: three":  `line 3: clusters.a.id: "three" is no cluster ID: want a number from 1 to 255`,
		"clusters:\n  a:\n    id: 0":      `line 3: clusters.a.id: "0" is no cluster ID`,
		"clusters:\n  a:\n    id: 999":    `line 3: clusters.a.id: "999" is no cluster ID`,
		"clusters:\n  a:\n    id: [3]":    "line 3: clusters.a.id: a list is no cluster ID",
		"clusters:\n  a:\n    networks:":  "line 3: clusters.a.networks: empty is no list: want one such as [a, b]; [] grants nothing",
		"clusters: {a: {networks: no}}":   `line 1: clusters.a.networks: "no" is no list`,
		"clusters: {a: {networks: [{}]}}": "line 1: clusters.a.networks: it has a mapping: want texts",
		"clusters: {a: {network: []}}":    "line 1: clusters.a.network: there is no such field: want id,",
		"clusters: {a: {}, a: {}}":        "line 1: clusters.a: it is there twice",
		"default: deny\n---\n{}":          "there is something behind the first YAML document",
		"default: deny\n\tclusters: {}":   "it is no YAML: line 2: found a tab character",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
	for _, text := range []string{"default: allow", "clusters: {a: {id: 511}}", "---\nclusters: {a: {networks: &n [10.0.0.0/8]}, b: {networks: *n, identities: [65536, 7-9]}}\n"} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPoliciesAreEqual(t *testing.T) {
	t.Parallel()
	parse := func(text string) *Policy {
		p, err := Parse([]byte(text))
		waittest.Must(t, err)
		return p
	}
	a, b := parse(example), parse(strings.Replace(example, "team-*", "team", 1))
	if !a.Equal(a, "paris") || a.Equal(b, "paris") || !a.Equal(b, "tokyo") || !a.Equal(b, "evil") || a.Equal(nil, "evil") || a.Equal(nil, "paris") {
		t.Error("policies are compared wrongly")
	}
}

func TestPrivileged(t *testing.T) {
	t.Parallel()
	for id, want := range map[uint32][2]bool{ // elsewhere, and at a node
		0: {}, 1: {true, false}, 2: {true, true}, 3: {}, 4: {}, 5: {}, 6: {true, false}, 7: {true, true}, 8: {}, 9: {true, true}, 10: {true, true}, 14: {true, true},
		100: {}, 128: {}, 65536: {},
	} {
		if got := [2]bool{Privileged(id, false), Privileged(id, true)}; got != want {
			t.Errorf("identity %d: %v, want %v", id, got, want)
		}
	}
}
