package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// wantBusy wants a refusal that says when to come again.
func wantBusy(t *testing.T, status int, header http.Header, body string) {
	t.Helper()
	var p Problem
	if err := json.Unmarshal([]byte(body), &p); status != http.StatusServiceUnavailable || err != nil || p.Status != status || header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", status, header, body)
	}
}

// eventuallyServed asks until it is answered well: what a client has ended is
// noticed by the server a moment later.
func eventuallyServed(t *testing.T, address, path string) {
	t.Helper()
	for t.Context().Err() == nil {
		c, err := net.Dial("tcp", address)
		must(t, err)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		c.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			return
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	limits := transport.DefaultLimits()
	limits.Connections.All = 2
	f, _, unix := served(t, WithLimits(limits))
	var open []net.Conn
	dial := func() net.Conn {
		c, err := net.Dial("tcp", f.Address())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	for range limits.Connections.All {
		c := dial()
		open = append(open, c)
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", resp, err)
		}
		resp.Body.Close()
	}
	status, header, body := raw(t, "tcp", f.Address(), "/healthz", "Host: localhost")
	wantBusy(t, status, header, body)
	if resp, _ := ask(t, unix, http.MethodGet, "/healthz", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("over the unix socket: %d", resp.StatusCode)
	}
	// Those who are refused and stay are not kept without bound either.
	for range transport.SpareConnections {
		dial()
	}
	last := dial()
	if _, err := last.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection beyond all limits: %v", err)
	}
	if got := refusals(t, f, "connections"); got != transport.SpareConnections+2 { // one got an answer, and the last one none
		t.Errorf("%v refusals of connections were counted", got)
	}
	open[0].Close()
	// The spare ones are still there, and a place is free.
	eventuallyServed(t, f.Address(), "/healthz")
}

func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	limits := transport.DefaultLimits()
	limits.Watches.All, limits.States.All = 3, 1
	f, _, unix := served(t, WithLimits(limits))
	f.fill()
	var last net.Conn
	for range limits.Watches.All {
		last = watchIdle(t, f.Address(), bufio.NewReader(nil))
	}
	status, header, body := raw(t, "tcp", f.Address(), "/v1/watch", "Host: localhost")
	wantBusy(t, status, header, body)
	for _, path := range []string{"/v1/status", "/healthz"} {
		if status, _, body := raw(t, "tcp", f.Address(), path, "Host: localhost"); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if all, peer := refusals(t, f, "watches"), refusals(t, f, "watches-per-peer"); all != 1 || peer != 0 {
		t.Errorf("%v and %v refusals of watches were counted", all, peer)
	}
	resp, err := unix.Get("http://localhost/v1/watch")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("over the unix socket: %v %v", resp, err)
	}
	resp.Body.Close()
	last.Close()
	eventuallyServed(t, f.Address(), "/v1/watch")
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	limits := transport.DefaultLimits()
	limits.Answers.All = 1
	f, _, unix := served(t, WithLimits(limits))
	started, finish := make(chan struct{}), make(chan struct{})
	f.serveForTest("/v1/slow", func(w http.ResponseWriter, _ *http.Request) error {
		close(started)
		<-finish
		return nil
	})
	slow := make(chan int)
	go func() {
		status, _, _ := raw(t, "tcp", f.Address(), "/v1/slow", "Host: localhost")
		slow <- status
	}()
	<-started
	for _, path := range []string{"/v1/ips", "/v1/status", "/metrics", "/v1/lookup/10.0.0.1"} {
		status, header, body := raw(t, "tcp", f.Address(), path, "Host: localhost")
		wantBusy(t, status, header, body)
		if resp, body := ask(t, unix, http.MethodGet, path, ""); resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s over the unix socket: %d %s", path, resp.StatusCode, body)
		}
	}
	if got := refusals(t, f, "answers"); got != 4 {
		t.Errorf("%v refusals of answers were counted", got)
	}
	for _, path := range []string{"/healthz", "/readyz"} { // probes have their answer whoever asks
		if status, _, body := raw(t, "tcp", f.Address(), path, "Host: localhost"); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	close(finish)
	if status := <-slow; status != http.StatusOK {
		t.Errorf("the slow one: %d", status)
	}
	eventuallyServed(t, f.Address(), "/v1/status")
}

// serveForTest adds a route to a server that runs; nobody asks for it before.
func (f *fixture) serveForTest(path string, handle func(http.ResponseWriter, *http.Request) error) {
	f.serve(route{method: http.MethodGet, path: path, handle: handle})
}

// TestLargeHeadersAreRefused: a request may not make the server keep much.
func TestLargeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	f, _, _ := served(t)
	c, err := net.Dial("tcp", f.Address())
	must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("0", 2*maxHeader))
	// What the server has not read may make the connection end before its answer is here.
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", resp.StatusCode)
	}
}
