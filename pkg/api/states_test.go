package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestStatesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStates(Limit{All: 3, Peer: 2})
		a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")
		take := func(peer netip.Addr) (func(), error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.ofPeer(ctx, peer)
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
			third, err := take(peer) // it is waited for
			if err != nil {
				t.Fatal(err)
			}
			first() // again: it changes nothing
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.ofPeer(gone, peer); !errors.Is(err, context.Canceled) {
				t.Errorf("a turn of somebody who is gone: %v", err)
			}
			second()
			third()
		}
		if len(s.peers) != 0 {
			t.Errorf("peers are kept: %v", s.peers)
		}
		if peer, all := s.refused.peer.Load(), s.refused.all.Load(); peer != 2 || all != 0 {
			t.Errorf("%d and %d were counted", peer, all)
		}
	})
}

// readSlow opens a watch, waits for its first event and reads nothing more.
func readSlow(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "GET /v1/watch?resource=ips HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil) //nolint:bodyclose // it ends with the connection
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	return c
}

// TestSlowReadersOfOnePeerLeaveRoom: one peer cannot have all turns of those who are
// sent a whole state.
func TestSlowReadersOfOnePeerLeaveRoom(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits()
	f, _, unix := served(t, func(s *Server) { s.firstWait = 50 * time.Millisecond })
	f.fillIPs(100_000) // more than the buffers of a connection take
	var slow net.Conn
	for range limits.States.Peer {
		slow = readSlow(t, f.Address())
	}
	status, header, body := raw(t, "tcp", f.Address(), "/v1/watch", "Host: localhost")
	wantBusy(t, status, header, body)
	if got := refusals(t, f, "states-per-peer"); got != 1 {
		t.Errorf("%v refusals were counted", got)
	}
	// Others have their turn: in all there are more than one peer may have.
	leave, err := f.states.ofPeer(t.Context(), netip.MustParseAddr("10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	leave()
	// So has whoever needs no state, or comes over the unix socket.
	resp, err := unix.Get("http://localhost/v1/watch?resource=nodes")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("over the unix socket: %v %v", resp, err)
	}
	resp.Body.Close()
	c, err := net.Dial("tcp", f.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /v1/watch?since=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", f.View.Token(f.View.Position()))
	if resp, err = http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusOK { //nolint:bodyclose // it ends with the connection
		t.Errorf("who goes on from a token: %v %v", resp, err)
	}
	slow.Close()
	eventuallyServed(t, f.Address(), "/v1/watch?resource=nodes")
}

// refusals is the metric of one limit.
func refusals(t *testing.T, f *fixture, limit string) float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(f.Collector())
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "mesh_agent_api_refused_total" {
		t.Fatalf("%v %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == limit {
			return m.GetCounter().GetValue()
		}
	}
	t.Fatalf("no series of %s: %v", limit, families)
	return 0
}
