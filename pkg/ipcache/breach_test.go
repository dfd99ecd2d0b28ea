package ipcache

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestBreaches checks addresses in the own networks, which are added and removed, and addresses for special use.
func TestBreaches(t *testing.T) {
	t.Parallel()
	c := New(Rules{Own: []Own{{netip.MustParsePrefix("10.96.0.0/12"), "service network"}}, Enforce: true})
	addrs := []netip.Addr{
		netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("169.254.169.254"),
		netip.MustParseAddr("10.200.0.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("::1"),
	}
	breaches := func() (out []string) {
		c.Breaches(slices.Values(addrs), func(a netip.Addr, b Breach) { out = append(out, fmt.Sprint(a, " ", b)) })
		return out
	}
	const service, metadata, loopback = "10.99.0.1 inside 10.96.0.0/12, a service network of the own cluster, which no remote can have",
		"169.254.169.254 in 169.254.0.0/16: link-local (RFC 3927)", "::1 in ::1/128: loopback (RFC 4291)"
	if got, want := breaches(), []string{service, metadata, loopback}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	own := func(name string) *Entry {
		return NewEntry(Spec{
			Prefix: netip.MustParsePrefix("10.200.0.0/24"), Cluster: &Claimant{"own", 1}, Kind: KindPodCIDR, Source: wire.SourceKVStore, Name: name,
		})
	}
	before := c.OwnRevision()
	c.Apply([]Op{{New: own("n1")}})
	const pod = "10.200.0.1 inside 10.200.0.0/24, a pod network of the own cluster, which no remote can have"
	if got, want := breaches(), []string{service, metadata, pod, loopback}; !slices.Equal(got, want) || c.OwnRevision() == before {
		t.Errorf("%q\nwant %q", got, want)
	}
	before = c.OwnRevision()
	c.Apply([]Op{{New: own("n2")}, {Old: own("n1")}})
	if c.OwnRevision() != before {
		t.Error("the own networks are as before")
	}
	c.Apply([]Op{{Old: own("n2")}})
	if got, want := breaches(), []string{service, metadata, loopback}; !slices.Equal(got, want) || c.OwnRevision() == before {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestTheQuickLookMissesNoSpecialUse: every prefix for special use passes the quick check.
func TestTheQuickLookMissesNoSpecialUse(t *testing.T) {
	t.Parallel()
	look := func(a netip.Addr) {
		p := netip.PrefixFrom(a, a.BitLen())
		if _, is := claims.Special(p); is && !maybeSpecial(placeOf(p)) {
			t.Errorf("%s is for special use and is not looked at", p)
		}
	}
	for first := range 256 {
		for _, rest := range [][3]byte{{}, {100, 100, 200}, {63, 129, 16}, {254, 169, 254}, {0, 0, 192}, {88, 99, 1}, {255, 255, 255}} {
			look(netip.AddrFrom4([4]byte{byte(first), rest[0], rest[1], rest[2]}))
		}
	}
	for first := range 1 << 16 {
		for _, rest := range []string{"::", "::1", ":ec2::254", ":ce::254", ":ff9b::1", ":ff9b:1::1", ":0:1::1"} {
			look(netip.MustParseAddr(fmt.Sprintf("%x%s", first, rest)))
		}
	}
}

// TestIsOwn: IsOwn reports true for the own networks and the own nodes. Claims of a remote cluster never change that.
func TestIsOwn(t *testing.T) {
	t.Parallel()
	c := New(Rules{Own: []Own{{netip.MustParsePrefix("10.96.0.0/12"), "service network"}}})
	entry := func(cluster string, kind Kind, source wire.Source, prefix string) *Entry {
		return NewEntry(Spec{Prefix: netip.MustParsePrefix(prefix), Cluster: &Claimant{cluster, 1}, Kind: kind, Source: source, Name: prefix})
	}
	c.Apply([]Op{
		{New: entry("own", KindPodCIDR, wire.SourceKVStore, "10.1.0.0/24")},
		{New: entry("own", KindNode, wire.SourceKVStore, "172.16.0.1/32")},
		{New: entry("west", KindPodCIDR, wire.SourceClusterMesh, "10.2.0.0/24")},
		{New: entry("west", KindNode, wire.SourceClusterMesh, "172.16.0.1/32")},
		{New: entry("west", KindNode, wire.SourceClusterMesh, "172.16.0.2/32")},
	})
	for text, want := range map[string]bool{
		"10.96.0.1": true, "10.1.0.1": true, "::ffff:10.1.0.1": true, "172.16.0.1": true,
		"10.2.0.1": false, "172.16.0.2": false, "10.3.0.1": false, "fd00::1": false,
	} {
		if got := c.IsOwn(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if c.IsOwn(netip.Addr{}) {
		t.Error("no address is ours")
	}
}
