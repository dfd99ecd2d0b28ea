package ipcache

import (
	"net/netip"
	"testing"
	"unsafe"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestTheEntryStaysSmall(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Entry{}); size > 80 {
		t.Errorf("an entry takes %d bytes, want at most 80: there are a million of them", size)
	}
}

// TestTreesDoNotCopyItems: the items do not have the methods that the B-tree calls on each item of a node that it
// copies.
func TestTreesDoNotCopyItems(t *testing.T) {
	t.Parallel()
	for _, item := range []any{&Entry{}, contest{}} {
		switch item.(type) {
		case interface{ Copy() *Entry }, interface{ IsoCopy() *Entry }, interface{ Copy() contest }, interface{ IsoCopy() contest }:
			t.Errorf("%T has a method that the B-tree would call", item)
		}
	}
}

func TestPrefixesAreCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, prefix, want, covers string }{
		{"a host", "10.0.0.1/32", "10.0.0.1/32", "10.0.0.1"},
		{"host bits count for nothing", "10.0.0.5/24", "10.0.0.0/24", "10.0.0.200"},
		{"host bits of IPv6", "fd00::5/64", "fd00::/64", "fd00::7"},
		{"a mapped host is IPv4", "::ffff:10.0.0.1/128", "10.0.0.1/32", "10.0.0.1"},
		{"a mapped prefix is IPv4", "::ffff:10.0.0.0/120", "10.0.0.0/24", "::ffff:10.0.0.9"},
		{"all mapped addresses are all of IPv4", "::ffff:0.0.0.0/96", "0.0.0.0/0", "1.2.3.4"},
		{"a shorter one is IPv6", "::ffff:10.0.0.1/95", "::fffe:0:0/95", "::fffe:1:1"},
		{"everything", "::/0", "::/0", "fe00::"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := NewEntry(Spec{Prefix: netip.MustParsePrefix(tt.prefix), Cluster: &Claimant{"a", 1}})
			if got := e.Prefix().String(); got != tt.want {
				t.Fatalf("the prefix is %s, want %s", got, tt.want)
			}
			c := New(Rules{})
			c.Apply([]Op{{New: e}})
			addr := netip.MustParseAddr(tt.covers)
			if chain := c.Lookup(addr).Claims; c.LookupWinner(addr) != e || len(chain) != 1 || chain[0] != e {
				t.Errorf("%s is not found under %s", tt.want, addr)
			}
			c.Apply([]Op{{Old: e}})
			if c.LookupWinner(addr) != nil || c.Len() != 0 || c.Claims() != 0 {
				t.Error("something is left of it")
			}
		})
	}
}

func TestAnEntryWithoutAPrefixClaimsNothing(t *testing.T) {
	t.Parallel()
	cluster := &Claimant{"a", 1}
	none := NewEntry(Spec{Prefix: netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 33), Cluster: cluster})
	some := NewEntry(Spec{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Cluster: cluster})
	if none.Prefix().IsValid() {
		t.Errorf("its prefix is %s", none.Prefix())
	}
	c := New(Rules{})
	c.Apply([]Op{{New: none}, {New: none}, {Old: none}, {Old: none, New: none}, {}})
	if c.Len() != 0 || c.Claims() != 0 || c.Revision() != 0 {
		t.Errorf("%d prefixes, %d claims, revision %d; want nothing", c.Len(), c.Claims(), c.Revision())
	}
	if c.LookupWinner(netip.Addr{}) != nil || c.Lookup(netip.Addr{}).Claims != nil {
		t.Error("the zero address was found")
	}
	c.Apply([]Op{{Old: none, New: some}})
	if c.Len() != 1 || c.Claims() != 1 {
		t.Error("a claim that follows it was not made")
	}
	c.Apply([]Op{{Old: some, New: none}})
	if c.Len() != 0 || c.Claims() != 0 {
		t.Error("a claim before it was not withdrawn")
	}
}

func TestAnEntryKeepsWhatItIsMadeOf(t *testing.T) {
	t.Parallel()
	cluster := &Claimant{"a", 1}
	s := Spec{
		Prefix: netip.MustParsePrefix("10.0.0.1/32"), Cluster: cluster, Kind: KindHost, Source: wire.SourceKVStore,
		Identity: 70000, EncryptionKey: 3, HostIP: netip.MustParseAddr("fd00::10"), Namespace: "ns", Name: "web-0",
		Ports: []wire.NamedPort{{Name: "http", Port: 80, Protocol: "TCP"}},
	}
	e := NewEntry(s)
	if e.Prefix() != s.Prefix || e.Cluster() != cluster || e.Kind() != s.Kind || e.Source() != s.Source ||
		e.Identity() != s.Identity || e.EncryptionKey() != s.EncryptionKey || e.HostIP() != s.HostIP ||
		e.Namespace() != "ns" || e.Pod() != "web-0" || e.NodeName() != "" || len(e.Ports()) != 1 || e.Ports()[0] != s.Ports[0] {
		t.Errorf("made %+v of %+v", e, s)
	}
	s.Kind = KindHealth
	if n := NewEntry(s); n.Pod() != "" || n.NodeName() != "web-0" {
		t.Errorf("a claim of a node has the pod %q and the node %q", n.Pod(), n.NodeName())
	}
	bare := NewEntry(Spec{Prefix: s.Prefix, Cluster: cluster})
	if bare.HostIP().IsValid() || bare.Namespace() != "" || bare.Ports() != nil || bare.Identity() != 0 {
		t.Errorf("what is not given is there: %+v", bare)
	}
}

// TestWhatMakesEntriesDiffer: a difference in any field is a change; equal contents in other memory are not.
func TestWhatMakesEntriesDiffer(t *testing.T) {
	t.Parallel()
	make1 := func(change func(*Spec)) *Entry {
		s := Spec{
			Prefix: netip.MustParsePrefix("10.0.0.1/32"), Cluster: &Claimant{"a", 1}, Identity: 1, Namespace: "ns", Name: "p",
			Ports: []wire.NamedPort{{Name: "http", Port: 80, Protocol: "TCP"}},
		}
		change(&s)
		return NewEntry(s)
	}
	base := make1(func(*Spec) {})
	if !base.equal(make1(func(*Spec) {})) {
		t.Error("equal contents differ")
	}
	for name, change := range map[string]func(*Spec){
		"prefix":         func(s *Spec) { s.Prefix = netip.MustParsePrefix("10.0.0.1/31") },
		"cluster":        func(s *Spec) { s.Cluster = &Claimant{"a", 2} },
		"kind":           func(s *Spec) { s.Kind = KindCIDR },
		"source":         func(s *Spec) { s.Source = wire.SourceLocal },
		"identity":       func(s *Spec) { s.Identity = 2 },
		"encryption key": func(s *Spec) { s.EncryptionKey = 1 },
		"host":           func(s *Spec) { s.HostIP = netip.MustParseAddr("1.2.3.4") },
		"namespace":      func(s *Spec) { s.Namespace = "" },
		"name":           func(s *Spec) { s.Name = "q" },
		"ports":          func(s *Spec) { s.Ports = nil },
	} {
		if base.equal(make1(change)) {
			t.Errorf("another %s is no change", name)
		}
	}
}
