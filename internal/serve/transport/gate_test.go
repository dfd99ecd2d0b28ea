package transport

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func newRefusals() Refusals {
	return Refusals{prometheus.NewCounter(prometheus.CounterOpts{Name: "all"}), prometheus.NewCounter(prometheus.CounterOpts{Name: "peer"})}
}

func TestGate(t *testing.T) {
	t.Parallel()
	refused := newRefusals()
	g := NewGate(Limit{All: 4, Peer: 2}, refused)
	a, b, own := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("127.0.0.1")
	enter := func(peer netip.Addr, want bool) func() {
		t.Helper()
		leave, ok := g.Enter(peer)
		if ok != want {
			t.Fatalf("%s: %v", peer, ok)
		}
		return leave
	}
	first := enter(a, true)
	enter(a, true)
	enter(a, false) // as many as one peer may have
	first()
	first() // counts once
	enter(a, true)
	enter(a, false)
	leaveB := enter(b, true)
	enter(b, false) // as many as all peers on other machines may have
	leaveB()
	leaveOwn := enter(own, true)
	enter(netip.MustParseAddr("127.0.0.2"), true) // is also this machine
	enter(b, false)                               // as many as all peers may have
	leaveOwn()
	enter(netip.IPv6Loopback(), true)
	if g.all != 4 || len(g.peers) != 2 || g.remote != 2 {
		t.Errorf("%d, %v", g.all, g.peers)
	}
	if peer, all := testutil.ToFloat64(refused.Peer), testutil.ToFloat64(refused.All); peer != 2 || all != 2 {
		t.Errorf("%v and %v refusals were counted", peer, all)
	}
}

// TestThisMachineLeavesPlaces: it leaves places for other machines, and these leave some for it, with any number of
// addresses on either side.
func TestThisMachineLeavesPlaces(t *testing.T) {
	t.Parallel()
	for _, limit := range []Limit{DefaultLimits().Connections, DefaultLimits().Watches, DefaultLimits().Answers} {
		own, others := NewGate(limit, Refusals{}), NewGate(limit, Refusals{})
		for i := range limit.All {
			own.Enter(netip.AddrFrom4([4]byte{127, 0, byte(i >> 8), byte(i)}))
			others.Enter(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		}
		if want := limit.All - limit.Peer; own.all != want || others.all != want {
			t.Errorf("%+v: this machine has %d, others have %d, want %d", limit, own.all, others.all, want)
		}
		for _, peer := range []string{"127.0.0.9", "10.9.9.9"} {
			g := map[bool]*Gate{true: others, false: own}[netip.MustParseAddr(peer).IsLoopback()]
			if _, ok := g.Enter(netip.MustParseAddr(peer)); !ok {
				t.Errorf("%+v: no place for %s", limit, peer)
			}
		}
	}
}

func TestPeers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "fe80::1%eth0": "fe80::", "::1": "127.0.0.1", "127.8.0.1": "127.0.0.1",
	} {
		if got := Peer(netip.MustParseAddr(text)); got != netip.MustParseAddr(want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestStatesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := newRefusals()
		s := NewStates(Limit{All: 3, Peer: 2}, refused)
		a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")
		take := func(peer netip.Addr) (func(), error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.OfPeer(ctx, peer)
		}
		for _, peer := range []netip.Addr{a, b} { // this machine is a peer, too
			first, err := take(peer)
			second, err2 := take(peer)
			if err = errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			if _, err := take(peer); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a third turn of %s: %v", peer, err)
			}
			time.AfterFunc(time.Second/2, first)
			third, err := take(peer) // the peer waits for it
			if err != nil {
				t.Fatal(err)
			}
			first() // again: it changes nothing
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.OfPeer(gone, peer); !errors.Is(err, context.Canceled) {
				t.Errorf("a turn of somebody who is gone: %v", err)
			}
			second()
			third()
		}
		if len(s.peers) != 0 {
			t.Errorf("peers are kept: %v", s.peers)
		}
		if peer, all := testutil.ToFloat64(refused.Peer), testutil.ToFloat64(refused.All); peer != 2 || all != 0 {
			t.Errorf("%v and %v were counted", peer, all)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
