package contents

import (
	"net/netip"
	"strings"
	"testing"
)

func TestDescriptionsAreValidated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Cluster)
		want   string // empty for a valid one
	}{
		"default":                {func(*Cluster) {}, ""},
		"bad name":               {func(c *Cluster) { c.Name = "No_Name" }, "cluster name"},
		"ID zero":                {func(c *Cluster) { c.ID = 0 }, "ID 0 is not in 1..255"},
		"ID too high":            {func(c *Cluster) { c.ID = 256 }, "ID 256 is not in 1..255"},
		"ID of 511":              {func(c *Cluster) { c.ID, c.MaxConnectedClusters = 511, 511 }, ""},
		"bad maximum":            {func(c *Cluster) { c.MaxConnectedClusters = 300 }, "300"},
		"negative nodes":         {func(c *Cluster) { c.Nodes = -1 }, "nodes: -1"},
		"too many nodes":         {func(c *Cluster) { c.Nodes = 9000 }, "nodes: 9000 is not in 0..8190"},
		"too many identities":    {func(c *Cluster) { c.Identities = 65000 }, "identities: 65000"},
		"addresses, no node":     {func(c *Cluster) { c.Nodes = 0 }, "at least one node"},
		"addresses, no identity": {func(c *Cluster) { c.Identities = 0 }, "at least one identity"},
		"range too small":        {func(c *Cluster) { c.PodRange = netip.MustParsePrefix("10.0.0.0/25") }, "too small"},
		"many of everything": {func(c *Cluster) {
			c.Nodes, c.Services, c.Identities, c.Addresses = 1000, 10_000, 60_000, 1_000_000
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Default("cluster1", 1)
			tc.change(&c)
			err := c.Validate()
			if tc.want == "" && err != nil {
				t.Error(err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error is %v, expected one with %q", err, tc.want)
			}
		})
	}
}

func TestMeshesAreValidated(t *testing.T) {
	t.Parallel()
	one, two := Default("x", 5), Default("y", 6)
	one.Mode, two.Mode = Local, Local
	err := Validate([]Cluster{Default("a", 1), Default("a", 2), Default("b", 2), Default("c", 300), one, two})
	for _, want := range []string{"two clusters are named a", "clusters a and b have the same ID 2", "ID 300", "clusters x and y are both the local one"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestRangesFitAndDiffer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id, maximum      uint32
		nodes, addresses int
		pods, node       string // range of all pods, of the second node's pods
		ip               string // of the second node
	}{
		"small":           {3, 255, 5, 200, "10.3.0.0/16", "10.3.1.0/24", "172.16.24.2"},
		"as many as fit":  {3, 255, 255, 50_000, "10.3.0.0/16", "10.3.1.0/24", "172.16.24.2"},
		"50,000 on 1,000": {3, 255, 1000, 50_000, "16.24.0.0/13", "16.24.1.0/24", "172.16.24.2"},
		"450,000":         {255, 255, 1000, 400_000, "23.248.0.0/13", "23.248.2.0/23", "172.23.248.2"},
		"a million":       {3, 255, 1000, 1_000_000, "fd00:10:3::/48", "fd00:10:3:1::/64", "172.16.24.2"},
		"many nodes":      {3, 255, 5000, 20_000, "16.24.0.0/13", "16.24.0.64/26", "100.64.96.2"},
		"high ID":         {511, 511, 5, 200, "31.248.0.0/13", "31.248.1.0/24", "172.31.248.2"},
		"high ID, IPv6":   {511, 511, 1000, 1_000_000, "fd00:10:1ff::/48", "fd00:10:1ff:1::/64", "172.31.248.2"},
		"high ID, many":   {511, 511, 8190, 1_000_000, "fd00:10:1ff::/48", "fd00:10:1ff:1::/64", "100.127.224.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Default("c", tc.id)
			c.MaxConnectedClusters, c.Nodes, c.Addresses = tc.maximum, tc.nodes, tc.addresses
			p, err := planAddresses(c)
			must(t, err)
			if p.pods.String() != tc.pods || p.podCIDR(1).String() != tc.node || p.nodeIP(1).String() != tc.ip {
				t.Errorf("pods %s, second node %s with %s", p.pods, p.podCIDR(1), p.nodeIP(1))
			}
			last := p.podCIDR(tc.nodes - 1)
			if !p.pods.Overlaps(last) || last.Bits() < p.pods.Bits() {
				t.Errorf("the last node's %s is outside of %s", last, p.pods)
			}
			if got := int(p.perNode) * tc.nodes; got < tc.addresses*9/8 {
				t.Errorf("room for %d pods", got)
			}
			if top := p.at(0, reservedAddresses+p.perNode-1); !p.podCIDR(0).Contains(top) {
				t.Errorf("the last pod of a node would get %s", top)
			}
		})
	}
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		whole string
		n     int
		want  string
	}{
		{"10.0.0.0/8", 1, "10.0.0.0/8"},
		{"10.0.0.0/8", 3, "10.0.0.0/10 10.64.0.0/10 10.128.0.0/10"},
		{"fd00::/40", 2, "fd00::/41 fd00:0:80::/41"},
		{"10.0.0.0/31", 4, ""},
		{"fd00::/64", 2, ""},
	} {
		parts, err := Divide(netip.MustParsePrefix(tc.whole), tc.n)
		if (err != nil) != (tc.want == "") {
			t.Errorf("%s by %d: %v", tc.whole, tc.n, err)
		}
		var words []string
		for _, p := range parts {
			words = append(words, p.String())
		}
		if got := strings.Join(words, " "); got != tc.want {
			t.Errorf("%s by %d is %s", tc.whole, tc.n, got)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for w := range 10_000 {
		name := workloadNamespace(w) + "/" + workloadApp(w)
		if seen[name] {
			t.Fatalf("two workloads are called %s", name)
		}
		seen[name] = true
	}
	for _, identities := range []int{1, 7, 40, 1000} {
		c := Default("cluster1", 1)
		c.Identities = identities
		services := map[string]bool{}
		for s := range 2000 {
			w := s % identities
			name := workloadNamespace(w) + "/" + serviceName(c, s, w)
			if services[name] {
				t.Fatalf("%d identities: two services are called %s", identities, name)
			}
			services[name] = true
		}
	}
	suffixes := map[string]bool{}
	for n := range uint64(200_000) {
		suffixes[suffix(n, 5)] = true
	}
	if len(suffixes) != 200_000 {
		t.Errorf("%d suffixes of 200,000", len(suffixes))
	}
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
