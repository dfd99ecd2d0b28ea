package claims

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func addresses(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestCollapse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want []netip.Prefix }{
		"nothing":         {},
		"halves":          {prefixes("10.0.1.0/24", "10.0.0.0/24", "10.0.2.0/23"), prefixes("10.0.0.0/22")},
		"no halves":       {prefixes("10.0.1.0/24", "10.0.2.0/24"), prefixes("10.0.1.0/24", "10.0.2.0/24")},
		"contained":       {prefixes("10.0.1.0/24", "10.0.1.5/32", "10.0.1.0/24"), prefixes("10.0.1.0/24")},
		"everything":      {prefixes("0.0.0.0/0", "128.0.0.0/1"), prefixes("0.0.0.0/0")},
		"the whole":       {prefixes("0.0.0.0/1", "128.0.0.0/1", "::/1"), prefixes("0.0.0.0/0", "::/1")},
		"the last ones":   {prefixes("255.255.255.255/32", "255.255.255.254/32"), prefixes("255.255.255.254/31")},
		"IPv6":            {prefixes("fd00::1/128", "fd00::/128"), prefixes("fd00::/127")},
		"of two families": {prefixes("fd00::/16", "10.0.0.0/8"), prefixes("10.0.0.0/8", "fd00::/16")},
	} {
		if got := Collapse(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 { // random networks within one /24: the result has the same addresses, none twice
		var in []netip.Prefix
		for range r.IntN(40) {
			in = append(in, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(r.IntN(256))}), 26+r.IntN(7)).Masked())
		}
		out := Collapse(in)
		for i := range 256 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			count := func(all []netip.Prefix) (n int) {
				for _, p := range all {
					if p.Contains(a) {
						n++
					}
				}
				return n
			}
			if (count(in) > 0) != (count(out) > 0) || count(out) > 1 {
				t.Fatalf("%s of %v: %v", a, in, out)
			}
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	var many []netip.Prefix
	for i := range 1000 {
		many = append(many, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(i / 100), byte(2 * (i % 100))}), 32))
	}
	paris := Seen{
		Name: "paris", ID: 3, Complete: true, Pods: prefixes("10.3.0.0/24", "10.3.1.0/24", "fd03::/64"), Nodes: addresses("192.168.3.1", "192.168.3.9", "fd99::1"),
		Claims:     prefixes("10.3.1.7/32", "10.5.0.9/32", "10.250.0.7/32", "10.251.0.0/16", "10.8.0.1/32", "192.168.3.9/32", "0.0.0.0/0"),
		Privileged: []Claim{{netip.MustParsePrefix("10.8.0.1/32"), 7}, {netip.MustParsePrefix("10.3.1.7/32"), 7}, {netip.MustParsePrefix("192.168.3.9/32"), 6}},
		Other:      prefixes("172.16.0.1/32", "169.254.169.254/32", "192.168.3.200/32", "10.5.0.9/32", "10.5.0.10/32"), Namespaces: []string{"shop", "team-a", "shop", "123", "*", "a\nb", ""},
		Services: []string{"shop/web"}, Refused: 2,
	}
	text := Suggest([]Seen{
		paris,
		{Name: "123", ID: 4, Complete: true, Nodes: addresses("192.168.4.1", "192.168.4.2"), Other: many},
		{Name: "null", ID: 5},
		{Name: "away"},
		{Name: "beside", ID: 6, Complete: true, Nodes: addresses("192.168.9.1", "192.168.9.3")},
		{Name: "bare", ID: 7, Complete: true},
		{Name: "lima", ID: 8, Complete: true, Pods: prefixes("10.5.0.0/24", "10.250.0.0/24")},
	}, Seen{Nodes: addresses("192.168.9.2"), Pods: prefixes("10.250.0.0/16", "10.251.3.0/24")})
	p, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for what, want := range map[string]string{
		"two halves of a pod network":      "- \"10.3.0.0/23\"\n",
		"a segment of nodes":               "- \"192.168.3.0/24\"\n",
		"nodes beside ours":                "- \"192.168.9.1/32\"\n      - \"192.168.9.3/32\"\n",
		"an address outside":               "- \"172.16.0.1/32\"\n",
		"an address for special use":       "NOT GRANTED, MESH-3111, for special use (docs/claims.md): \"169.254.169.254/32\"\n",
		"an address of another":            "NOT GRANTED, MESH-3112, in 10.5.0.0/24 of lima: \"10.5.0.9/32\"\n",
		"one of the own cluster":           "NOT GRANTED, MESH-3110, in a network of the own cluster: \"10.250.0.7/32\"\n",
		"a network around an own one":      "NOT GRANTED, MESH-3110, in a network of the own cluster: \"10.251.0.0/16\"\n",
		"an own network that is announced": "NOT GRANTED, MESH-3110, in a network of the own cluster: \"10.250.0.0/24\"\n",
		"a default route":                  "NOT GRANTED, MESH-3110, in a network of the own cluster: \"0.0.0.0/0\"\n",
		"a privileged identity":            "NOT GRANTED, MESH-3113, with a privileged identity: \"10.8.0.1/32\"\n",
		"one in a granted network":         "1 addresses in these networks have a privileged identity, MESH-3113",
		"a backend elsewhere":              "- \"10.5.0.10/32\"\n",
		"an odd namespace":                 "NOT GRANTED, no name of a namespace: \"*\"\n",
		"one that would break the line":    "NOT GRANTED, no name of a namespace: \"a\\nb\"\n",
		"namespaces":                       "namespaces: [\"123\", \"shop\", \"team-a\"]",
		"services as a hint":               "# services: [shop/web]\n",
		"one that claims nothing":          "networks: []\n",
		"what is refused":                  "2 of its entries are refused now",
		"the one that is not known":        "away has no ID yet",
		"the one that is not read so far":  "was not read completely",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: %q is not in\n%s", what, want, text)
		}
	}
	for name, id := range map[string]uint32{"paris": 3, "123": 4, "null": 5, "away": 0} {
		if p.Pin(name) != id {
			t.Errorf("%s has the pin %d", name, p.Pin(name))
		}
	}
	g, _ := p.Of("123")
	for _, m := range many {
		if err := g.Address(m); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(string(text), "10.77."); n > 10 {
		t.Errorf("%d networks for a thousand addresses", n)
	}
	g, _ = p.Of("paris")
	if g.Address(netip.MustParsePrefix("169.254.169.254/32")) == nil || g.Namespace("kube-system") == nil || g.Address(netip.MustParsePrefix("10.4.0.1/32")) == nil ||
		g.Address(netip.MustParsePrefix("10.5.0.9/32")) == nil || g.Address(netip.MustParsePrefix("10.250.0.7/32")) == nil || g.Address(netip.MustParsePrefix("10.8.0.1/32")) == nil {
		t.Error("more is granted than was seen")
	}
	for _, name := range []string{"null", "away", "other"} {
		if g, admitted := p.Of(name); !admitted || g.Address(netip.MustParsePrefix("8.8.8.8/32")) != nil {
			t.Errorf("%s is restricted", name)
		}
	}
	if p, err := Parse(Suggest(nil, Seen{})); err != nil || p.Pin("x") != 0 {
		t.Error(fmt.Errorf("without clusters: %w", err))
	}
}
