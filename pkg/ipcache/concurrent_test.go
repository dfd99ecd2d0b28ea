package ipcache

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
)

// TestManyAtOnce runs writers of several clusters, lookups and snapshots concurrently, for the race detector. At the
// end everything is consistent.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	c := New(Rules{})
	const writers, addresses, rounds = 4, 300, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			cluster := &Claimant{string(rune('a' + w)), uint32(w + 1)}
			for round := range rounds {
				ops := make([]Op, 0, addresses)
				for i := range addresses {
					addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
					e := NewEntry(Spec{Prefix: netip.PrefixFrom(addr, 32), Cluster: cluster, Identity: uint32(round)})
					if round%3 == 1 {
						ops = append(ops, Op{Old: e})
					} else {
						ops = append(ops, Op{Old: e, New: e})
					}
				}
				c.Apply(ops)
			}
		})
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
				c.LookupWinner(addr)
				chain := c.Lookup(addr).Claims
				if !slices.IsSortedFunc(chain, (*Entry).Compare) {
					t.Errorf("the claims on %s are out of order", addr)
					return
				}
				s, n := c.Snapshot(), 0
				var last netip.Prefix
				for e := range s.From(netip.Prefix{}) {
					if last.IsValid() && !placeOf(last).before(placeOf(e.Prefix())) {
						t.Errorf("%s after %s", e.Prefix(), last)
						return
					}
					last = e.Prefix()
					n++
				}
				if n != s.Len() {
					t.Errorf("%d entries in a snapshot of %d", n, s.Len())
					return
				}
			}
		})
	}
	wg.Wait()
	close(done)
	readers.Wait()
	if c.Len() != addresses || c.Claims() != writers*addresses || c.fresh().Conflicts() != addresses {
		t.Errorf("%d prefixes, %d claims, %d conflicts; want %d, %d, %d", c.Len(), c.Claims(), c.fresh().Conflicts(), addresses, writers*addresses, addresses)
	}
	for e := range c.fresh().From(netip.Prefix{}) {
		if e.Cluster().ID != 1 || e.Identity() != rounds-1 {
			t.Fatalf("%s is won by cluster %d with identity %d", e.Prefix(), e.Cluster().ID, e.Identity())
		}
	}
}
