package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// readSlow opens a watch, waits for its first event and reads nothing more.
func readSlow(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.(*net.TCPConn).SetReadBuffer(4<<10))
	fmt.Fprint(c, "GET /v1/watch?resource=ips HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil) //nolint:bodyclose // it ends with the connection
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	return c
}

// TestSlowReadersOfOnePeerLeaveRoom: one peer cannot have all turns of the watches that are sent a whole state.
func TestSlowReadersOfOnePeerLeaveRoom(t *testing.T) {
	t.Parallel()
	limits := transport.DefaultLimits()
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
	// Other peers have their turn: the limit of all peers is higher than that of one.
	leave, err := f.states.OfPeer(t.Context(), netip.MustParseAddr("10.0.0.1"))
	must(t, err)
	leave()
	// So have watches that need no state, and clients of the unix socket.
	resp, err := unix.Get("http://localhost/v1/watch?resource=nodes")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("over the unix socket: %v %v", resp, err)
	}
	resp.Body.Close()
	c, err := net.Dial("tcp", f.Address())
	must(t, err)
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
	all := counted(t, f, "mesh_agent_api_refused_total")
	n, is := all[limit]
	if !is {
		t.Fatalf("no series of %s: %v", limit, all)
	}
	return n
}

// counted returns the series of a counter of the server, by the values of their labels.
func counted(t *testing.T, f *fixture, name string) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(f.Collector())
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if family.GetName() == name {
				all[strings.Join(labels, " ")] = m.GetCounter().GetValue()
			}
		}
	}
	return all
}

// How idle watchers are measured.
const (
	idleWatchers = 1992            // with the first one no more than this machine may have
	idleOpeners  = 8               // at once
	idleBound    = 60 << 20 / 2000 // for each, heap in use and stacks: 60 MiB for all
)

// inUse is the memory of heap and stacks that is in use after garbage collections.
func inUse() uint64 {
	var m runtime.MemStats
	for range 3 { // a stack halves with each collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// watchIdle opens a watch on a connection of its own, reads the state, and returns the bare connection. On a busy machine
// it is refused while other states are sent, and is tried again.
func watchIdle(t testing.TB, address string, lines *bufio.Reader) (c net.Conn) {
	t.Helper()
	waittest.Try(t, "a watch", func() (err error) {
		c, err = tryWatch(address, lines)
		return err
	})
	t.Cleanup(func() { c.Close() })
	return c
}

func tryWatch(address string, lines *bufio.Reader) (net.Conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_, err = c.Write([]byte("GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	lines.Reset(c)
	for synced := 0; err == nil && synced < len(view.Kinds()); {
		var line string
		if line, err = lines.ReadString('\n'); strings.HasPrefix(line, "event: "+api.WatchSynced) {
			synced++
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// TestIdleWatchersNeedLittleMemory is not parallel: it measures the heap, and with
// it also the clients' side of the connections.
func TestIdleWatchersNeedLittleMemory(t *testing.T) {
	heaptest.Long(t)
	f, _, _ := served(t)
	f.fill()
	f.fillIPs(300)
	watchIdle(t, f.Address(), bufio.NewReader(nil))
	before := inUse()
	var group sync.WaitGroup
	for range idleOpeners {
		group.Go(func() {
			lines := bufio.NewReader(nil)
			for range idleWatchers / idleOpeners {
				watchIdle(t, f.Address(), lines)
			}
		})
	}
	group.Wait()
	after := inUse()
	if t.Failed() {
		return
	}
	growth := int64(after) - int64(before)
	t.Logf("%d idle watchers: %d KiB, %d bytes each", idleWatchers, growth>>10, growth/int64(idleWatchers))
	if growth > int64(idleWatchers)*idleBound {
		t.Errorf("%d idle watchers cost %d KiB, at most %d are allowed", idleWatchers, growth>>10, idleWatchers*idleBound>>10)
	}
}
