package ipcache

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func claimOf(c *Claimant, kind Kind, p netip.Prefix) Op {
	return Op{New: NewEntry(Spec{Cluster: c, Source: wire.SourceClusterMesh, Name: "n", Prefix: p, Kind: kind, Identity: 65537})}
}

// hosts returns claims on n addresses, starting at first.
func hosts(c *Claimant, first string, n int) (ops []Op) {
	addr := netip.MustParseAddr(first)
	for range n {
		ops, addr = append(ops, claimOf(c, KindHost, netip.PrefixFrom(addr, addr.BitLen()))), addr.Next()
	}
	return ops
}

// TestWhoChangesNetworksJudgesAgain: a cluster does not do the reviews that another cluster's changes require. A review
// that its cluster did not finish is still done, in small steps.
func TestWhoChangesNetworksJudgesAgain(t *testing.T) {
	t.Parallel()
	a, b := &Claimant{Name: "a", ID: 1}, &Claimant{Name: "b", ID: 2}
	c := New(Rules{})
	c.Apply(hosts(a, "10.0.0.0", 3*reviewed))
	c.hold([]Op{claimOf(b, KindPodCIDR, netip.MustParsePrefix("10.0.0.0/16"))}) // without the review
	other := claimOf(a, KindHost, netip.MustParsePrefix("192.168.0.1/32"))
	c.Apply([]Op{other})
	if !c.core.reviews.any() {
		t.Error("who changed nothing about networks judged all again")
	}
	for range 20 {
		c.Apply([]Op{{Old: other.New, New: other.New}})
	}
	if c.core.reviews.any() {
		t.Error("what is inside a network is never judged again")
	}
	if tallies, _ := c.Tallies(0); len(tallies) != 1 || tallies[0].Claims != 3*reviewed {
		t.Errorf("%+v", tallies)
	}
}

// TestNobodyWaitsForTheReviewsOfOthers: a change of the own networks is reviewed at once and completely, and one of a
// remote cluster soon, also while another cluster has many reviews waiting. Run completes all of them.
func TestNobodyWaitsForTheReviewsOfOthers(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	hostile, a, own := &Claimant{Name: "hostile", ID: 1}, &Claimant{Name: "a", ID: 2}, &Claimant{Name: "own", ID: 9}
	c := New(Rules{})
	c.Apply(hosts(a, "10.1.0.0", 10*reviewed))
	c.Apply(hosts(hostile, "10.2.0.0", 100))
	var ops []Op
	for i := range 50_000 { // single networks, and then one that contains the claims of a
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		ops = append(ops, claimOf(hostile, KindPodCIDR, p))
	}
	ops = append(ops, claimOf(hostile, KindPodCIDR, netip.MustParsePrefix("10.1.0.0/16")))
	c.Apply(ops)
	if n := len(c.core.reviews.lines[0].waiting); n < 1000 {
		t.Fatalf("%d tasks wait: the test shows little", n)
	}
	c.Apply([]Op{claimOf(a, KindPodCIDR, netip.MustParsePrefix("10.2.0.0/24"))})
	if found := c.Lookup(netip.MustParseAddr("10.2.0.7")); len(found.Strays) != 1 {
		t.Error("what is inside the network of a cluster is not judged while another one has much to be judged")
	}
	network := claimOf(own, KindPodCIDR, netip.MustParsePrefix("10.1.0.0/16")).New
	network.source = wire.SourceKVStore
	c.Apply([]Op{{New: network}})
	if barred := c.Lookup(netip.MustParseAddr("10.1.39.255")); len(barred.Claims) != 1 || len(barred.Strays) != 2 { // of a, and of hostile
		t.Errorf("claims inside the own networks count, after the change that made these: %+v", barred)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	for waiting := true; waiting; {
		c.mu.RLock()
		waiting = c.core.reviews.any()
		c.mu.RUnlock()
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(c.core.reviews.of)+len(c.core.reviews.lines) != 0 {
		t.Error("lines are kept that have nothing")
	}
}

// TestWhatIsWithinIsDoneWithIt: nested networks are reviewed once, with the outermost.
func TestWhatIsWithinIsDoneWithIt(t *testing.T) {
	t.Parallel()
	a := &Claimant{Name: "a", ID: 1}
	r := newReviews()
	ask := func(prefixes ...string) {
		for _, p := range prefixes {
			e := claimOf(a, KindPodCIDR, netip.MustParsePrefix(p)).New
			r.ask(e, task{e.place(), reachInside})
		}
	}
	ask("10.0.0.0/24", "10.0.0.0/20", "10.0.0.0/20", "10.0.1.0/24", "fd00::/64", "10.0.0.0/16", "10.9.0.0/24", "fd00::1:0/112")
	var got []string
	for l := r.next(); l.begin() != nil; l.now = nil {
		got = append(got, l.now.within.prefix().String())
	}
	if want := []string{"fd00::/64", "10.0.0.0/16", "10.9.0.0/24"}; !slices.Equal(got, want) {
		t.Errorf("judged is what is inside %v, want %v", got, want)
	}
	r.served(r.next())
	if r.any() {
		t.Error("something is left")
	}
}

// BenchmarkReviews measures requesting and doing one more review while this many others wait. The cost must not grow
// with their number.
func BenchmarkReviews(b *testing.B) {
	a := &Claimant{Name: "a", ID: 1}
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCore()
			i := 0
			ask := func() {
				e := claimOf(a, KindPodCIDR, netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)}), 32)).New
				c.reviews.ask(e, task{e.place(), reachInside})
				i++
			}
			for range n {
				ask()
			}
			b.ReportAllocs()
			for b.Loop() {
				ask()
				l := c.reviews.next()
				for done := l.begin() == nil; !done; {
					_, done = c.proceed(l.now, reviewed)
				}
				l.now = nil
			}
		})
	}
}
