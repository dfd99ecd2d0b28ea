package xdsserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/quota"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestStreamsAreCounted: the resources that streams follow, by name and all, are charged to their owner, refused above
// its share, and released when the streams end.
func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	w, c := catalogOf(t)
	w.Play(t, "service east shop/a 10.0.0.1\nservice east shop/b 10.0.0.2")
	c.kept = newAmount(1 << 20)
	s := &Server{catalog: c, names: DefaultNames, metrics: NewMetrics(), boundary: boundary.New(nil).Part("xds"), log: slog.New(slog.DiscardHandler)}
	open := func() *clientStream { return &clientStream{s: s, client: &client{}, ctx: t.Context(), owner: alice} }
	long := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint(i, strings.Repeat("x", 500)))
		}
		return names
	}
	for k := range kinds {
		for _, names := range [][]string{{"*"}, {"shop/a:80"}, append(long(100), "*"), long(50)} {
			one := open()
			sub := stream.NewDeltaSubscription(names, nil, nil, false)
			_, err := one.subscribe(k, &sub)
			waittest.Must(t, err)
			if least := int64(len(names)-1) * 500; c.kept.Held(alice) < least {
				t.Errorf("%d bytes are counted of %d", c.kept.Held(alice), least)
			}
			sub = stream.NewDeltaSubscription(long(900), nil, nil, false)
			_, err = one.subscribe(k, &sub)
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "--xds-max-memory") {
				t.Errorf("too much: %v", err)
			}
			one.leave()
			if n := c.kept.Sum(); n != 0 {
				t.Fatalf("%s %.50q: %d bytes are left", k, names, n)
			}
		}
	}
}

// TestLocalPrograms: local programs have two shares together.
func TestLocalPrograms(t *testing.T) {
	t.Parallel()
	a := newAmount(100)
	for n := range uint64(2) { // all streams of one address have one share
		waittest.Must(t, a.Reserve(ownerOf(alice, n), 12))
		waittest.Must(t, a.Reserve(ownerOf(netip.Addr{}, n), 13))
		waittest.Must(t, a.Reserve(ownerOf(netip.MustParseAddr("127.0.0.7"), n), 12))
	}
	for n := range uint64(2) {
		for _, peer := range []netip.Addr{alice, {}, netip.IPv6Loopback()} {
			if _, is := errors.AsType[*quota.Exceeded](a.Reserve(ownerOf(peer, n), 2)); !is {
				t.Errorf("%s has more than its share", peer)
			}
		}
	}
}
