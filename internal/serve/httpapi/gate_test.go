package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// wantBusy wants a refusal with a Retry-After.
func wantBusy(t *testing.T, status int, header http.Header, body string) {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(body), &p); status != http.StatusServiceUnavailable || err != nil || p.Status != status || header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", status, header, body)
	}
}

// eventuallyServed asks until it gets a good answer: the server notices a moment later that a client has closed its
// connection.
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

// TestConnectionsAreBounded: served connections keep their places. Probes are answered above the limit too.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	limits := transport.DefaultLimits()
	limits.Connections.All = 2
	f, _, unix := served(t, WithLimits(limits))
	var last net.Conn
	for range limits.Connections.All {
		last = watchIdle(t, f.Address(), bufio.NewReader(nil))
	}
	status, header, body := raw(t, "tcp", f.Address(), "/v1/status", "Host: localhost")
	wantBusy(t, status, header, body)
	if got := refusals(t, f, "connections"); got != 1 {
		t.Errorf("%v refusals of connections were counted", got)
	}
	if resp, _ := ask(t, unix, http.MethodGet, "/v1/status", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("over the unix socket: %d", resp.StatusCode)
	}
	probeWhile(t, f.Address(), 50, "")
	last.Close()
	eventuallyServed(t, f.Address(), "/v1/status")
}

// probeWhile sends probes to an agent while another client opens connections without end, writes a text to each and
// closes none. Each probe has to succeed.
func probeWhile(t *testing.T, address string, probes int, text string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	flood.Go(func() {
		var open []net.Conn
		for i := 0; ctx.Err() == nil; i++ {
			from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%7))}
			c, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", address)
			if err != nil {
				continue
			}
			_, _ = c.Write([]byte(text)) // the server may have closed it
			if open = append(open, c); len(open) > 4096 {
				open[0].Close() // the server has, too
				open = open[1:]
			}
		}
		for _, c := range open {
			c.Close()
		}
	})
	defer flood.Wait()
	defer stop()
	for i := range probes {
		path := []string{"/healthz", "/readyz"}[i%2]
		if status, _, body := raw(t, "tcp", address, path, "Host: localhost"); status != http.StatusOK {
			t.Fatalf("probe %d: %d %s", i, status, body)
		}
	}
}

// TestProbesHaveAPlace: probes are answered while other clients hold all connections, in several ways: waiting
// connections are closed for them.
func TestProbesHaveAPlace(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	request := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
	for name, text := range map[string]string{"silent": "", "slow headers": request, "kept alive": request + "\r\n"} {
		t.Run(name, func(t *testing.T) {
			f, _, _ := served(t)
			for range transport.DefaultLimits().Connections.All + transport.SpareConnections {
				c, err := net.Dial("tcp", f.Address())
				must(t, err)
				defer c.Close()
				_, _ = io.WriteString(c, text) // the server may have closed it
			}
			probeWhile(t, f.Address(), 100, text)
			if status, _, body := raw(t, "tcp", f.Address(), "/v1/status", "Host: localhost"); status != http.StatusOK {
				t.Errorf("another request: %d %s", status, body)
			}
		})
	}
}

// TestAPanicEndsOneRequest: the panic is counted.
func TestAPanicEndsOneRequest(t *testing.T) {
	t.Parallel()
	bounds := boundary.New(nil)
	f, _, _ := served(t, WithBoundary(bounds.Part("http")))
	f.serveForTest("/v1/panics", func(http.ResponseWriter, *http.Request) error { panic("of one request") })
	f.serveForTest("/v1/begins", func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = io.WriteString(w, "half")
		w.(*response).control.Flush()
		panic("of a begun answer")
	})
	f.serveForTest("/v1/aborts", func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
	if status, _, body := raw(t, "tcp", f.Address(), "/v1/panics", "Host: localhost"); status != http.StatusInternalServerError || strings.Contains(body, "of one request") {
		t.Errorf("%d %s", status, body)
	}
	for _, path := range []string{"/v1/begins", "/v1/aborts"} {
		resp, err := http.Get("http://" + f.Address() + path)
		if err == nil {
			if _, err = io.ReadAll(resp.Body); err == nil {
				t.Errorf("%s: the answer is taken for complete", path)
			}
			resp.Body.Close()
		}
	}
	if got := testutil.ToFloat64(bounds.WithLabelValues("http")); got != 2 {
		t.Errorf("%v failures were counted", got)
	}
	eventuallyServed(t, f.Address(), "/v1/status")
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
	for _, path := range []string{"/healthz", "/readyz"} { // probes are answered for all clients
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

// serveForTest adds a route to a running server; there were no requests for it before.
func (f *fixture) serveForTest(path string, handle func(http.ResponseWriter, *http.Request) error) {
	f.serve(route{method: http.MethodGet, path: path, handle: handle})
}

// TestLargeHeadersAreRefused: a request cannot make the server keep much.
func TestLargeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	f, _, _ := served(t)
	c, err := net.Dial("tcp", f.Address())
	must(t, err)
	defer c.Close()
	fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("0", 2*maxHeader))
	// The connection may end before the answer arrives, because the server has not read all of the request.
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", resp.StatusCode)
	}
}
