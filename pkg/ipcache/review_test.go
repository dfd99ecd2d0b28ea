package ipcache

import (
	"net/netip"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestWhoChangesNetworksJudgesAgain: a cluster does not do the work that another one
// makes; what somebody could not finish is done all the same, bit by bit.
func TestWhoChangesNetworksJudgesAgain(t *testing.T) {
	t.Parallel()
	a, b := &Cluster{Name: "a", ID: 1}, &Cluster{Name: "b", ID: 2}
	claim := func(c *Cluster, kind Kind, p netip.Prefix) Op {
		return Op{New: NewEntry(Spec{Cluster: c, Source: wire.SourceClusterMesh, Name: "n", Prefix: p, Kind: kind, Identity: 65537})}
	}
	c := New()
	var ops []Op
	addr := netip.MustParseAddr("10.0.0.0")
	for range 3 * reviewed {
		ops, addr = append(ops, claim(a, KindHost, netip.PrefixFrom(addr, 32))), addr.Next()
	}
	c.Apply(ops)
	c.hold([]Op{claim(b, KindPodCIDR, netip.MustParsePrefix("10.0.0.0/16"))}) // and it does not come to judge again
	other := claim(a, KindHost, netip.MustParsePrefix("192.168.0.1/32"))
	c.Apply([]Op{other})
	if len(c.core.asked) == 0 {
		t.Error("who changed nothing about networks judged all again")
	}
	for range 20 {
		c.Apply([]Op{{Old: other.New, New: other.New}})
	}
	if n := len(c.core.asked); n != 0 {
		t.Errorf("%d networks are never judged again", n)
	}
	if tallies, _ := c.Tallies(0); len(tallies) != 1 || tallies[0].Claims != 3*reviewed {
		t.Errorf("%+v", tallies)
	}
}
