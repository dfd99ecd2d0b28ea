package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// TestHTTPRequests: valid and invalid HTTP/1.1 requests to all paths that the API describes; some of the clients watch
// and do not read.
func TestHTTPRequests(t *testing.T) {
	w := newWorld(t)
	h := w.newHTTPClients()
	w.attack(h.hostile, h.harmless)
}

// TestHTTPFrames: frames of HTTP/2 to the API, over TLS.
func TestHTTPFrames(t *testing.T) {
	w := newSecureWorld(t)
	h := w.newHTTPClients()
	secure := w.secure.Clone()
	secure.NextProtos = []string{"h2"}
	w.attack(w.frames(w.agent.api, secure, h.headers, func(r *rand.Rand) []byte { return bytesOf(r, 300) }), h.harmless)
}

// httpClients send requests.
type httpClients struct {
	w     *world
	paths []string // the paths of the API, with {NAME} for a parameter
	mu    sync.Mutex
	kept  [held]net.Conn // guarded by mu
	count int            // guarded by mu
}

// newHTTPClients reads the paths from the agent.
func (w *world) newHTTPClients() *httpClients {
	w.tb.Helper()
	h := &httpClients{w: w}
	resp, err := w.plain().Get(w.url("/openapi.json"))
	must(w.tb, err)
	defer resp.Body.Close()
	var described struct{ Paths map[string]any }
	must(w.tb, json.NewDecoder(resp.Body).Decode(&described))
	for path := range described.Paths {
		h.paths = append(h.paths, path)
	}
	slices.Sort(h.paths)
	if len(h.paths) < 20 {
		w.tb.Fatalf("the API describes only %v", h.paths)
	}
	h.paths = append(h.paths, "/", "/ui/", "/ui", "/nothing", "/debug/pprof/heap", "/v1/../v1/status", "//", "/%00", "*")
	w.tb.Cleanup(func() {
		for _, conn := range h.kept {
			if conn != nil {
				_ = conn.Close()
			}
		}
	})
	return h
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// path is a path of the API with some query.
func (h *httpClients) path(r *rand.Rand) string {
	path := parameter.ReplaceAllStringFunc(one(r, h.paths...), func(string) string { return url.PathEscape(apiValue(r)) })
	names := []string{"cluster", "namespace", "name", "labels", "prefix", "identity", "kind", "limit", "cursor", "resource", "since", "port", "zone", "from", "watch", "x"}
	var query []string
	for range r.IntN(4) {
		value := apiValue(r)
		if r.IntN(10) > 0 {
			value = url.QueryEscape(value)
		}
		query = append(query, one(r, names...)+"="+value)
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return path
}

// apiValue is a value of a parameter.
func apiValue(r *rand.Rand) string {
	return one(r, "c1", "evil", "ns", "svc1", "node1", "10.1.0.1", "10.0.0.0/8", "::/0", "app=svc1", "app in (a,b),!c", "0", "1", "-1", "10", "99999999999999999999",
		"services", "nodes", "ips", "http", "a", "", "true", strings.Repeat("a,", r.IntN(2000)), string(bytesOf(r, 20)), "../..", "%", "\x00", "'\"<script>", dnsName(r))
}

// request is an HTTP/1.1 request, as text.
func (h *httpClients) request(r *rand.Rand) []byte {
	var b bytes.Buffer
	method := one(r, "GET", "GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "PUT", "POST", "DELETE", "CONNECT", "PRI", "G\x00T", "")
	fmt.Fprintf(&b, "%s %s HTTP/%s\r\n", method, h.path(r), one(r, "1.1", "1.1", "1.1", "1.1", "1.1", "1.0", "2.0", "9.9", "x"))
	fmt.Fprintf(&b, "Host: %s\r\n", one(r, h.w.agent.api, h.w.agent.api, "localhost", "evil.example", "", "a b"))
	for range r.IntN(4) {
		name := one(r, "Accept", "Accept-Encoding", "Last-Event-ID", "If-None-Match", "Range", "Origin", "Sec-Fetch-Site", "Expect", "Connection", "Upgrade", "HTTP2-Settings", "X", "A\x00", "Host", "Content-Length")
		value := one(r, "*/*", "text/event-stream", "gzip", "bytes=0-1,5-", "100-continue", "Upgrade", "h2c", "keep-alive", "close", string(bytesOf(r, 30)), strings.Repeat("v", r.IntN(10_000)), "-1", "0")
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	switch body := bytesOf(r, 200); r.IntN(12) {
	case 0:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", one(r, len(body), r.IntN(1<<30)), body)
	case 1:
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", one(r, len(body), r.IntN(1<<30)), body)
	case 2:
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"level\":\"info\"}\n")
	default:
		b.WriteString("\r\n")
	}
	if r.IntN(8) == 0 {
		return mutated(r, b.Bytes())
	}
	return b.Bytes()
}

// hostile sends some requests over one connection, and closes it, or keeps it open without reading.
func (h *httpClients) hostile(ctx context.Context, r *rand.Rand) int {
	network, address := "tcp", h.w.agent.api
	if r.IntN(5) == 0 {
		network, address = "unix", h.w.agent.socket
	}
	conn, err := net.DialTimeout(network, address, lostTime)
	if err != nil {
		return 1
	}
	_ = conn.SetDeadline(time.Now().Add(lostTime))
	if r.IntN(20) == 0 { // it watches, and does not read
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", one(r, "/v1/watch", "/v1/watch?resource=services", "/v1/services", "/metrics", h.path(r)), h.w.agent.api)
		h.keep(conn)
		return 1
	}
	defer conn.Close()
	requests := 1 + r.IntN(20)
	for range requests {
		text := h.request(r)
		if r.IntN(100) == 0 {
			half := r.IntN(len(text) + 1)
			_, _ = conn.Write(text[:half])
			_ = waiting.Sleep(ctx, time.Millisecond)
			text = text[half:]
		}
		if _, err := conn.Write(text); err != nil {
			break // the server has closed it
		}
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok && r.IntN(4) > 0 {
		_ = half.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}
	return requests
}

// keep makes a connection stay open, in place of the oldest one.
func (h *httpClients) keep(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	place := &h.kept[h.count%held]
	if *place != nil {
		_ = (*place).Close()
	}
	*place = conn
	h.count++
}

// headers are those of an HTTP/2 request.
func (h *httpClients) headers(r *rand.Rand) []hpack.HeaderField {
	all := []hpack.HeaderField{
		{Name: ":method", Value: one(r, "GET", "GET", "GET", "HEAD", "PUT", "CONNECT", "")},
		{Name: ":scheme", Value: one(r, "https", "https", "http", "")},
		{Name: ":path", Value: h.path(r)},
		{Name: ":authority", Value: one(r, h.w.agent.api, h.w.agent.api, "evil.example", "")},
	}
	for range r.IntN(4) {
		all = append(all, hpack.HeaderField{Name: one(r, "accept", "last-event-id", "cookie", "te", "connection", "X-UPPER", ":path", "a\x00"), Value: string(bytesOf(r, 40))})
	}
	return all
}

// harmless asks for lists of existing objects, each client over its own connections.
func (h *httpClients) harmless(ctx context.Context, r *rand.Rand) int {
	client := h.w.plain()
	defer client.CloseIdleConnections()
	const requests = 10
	for range requests {
		if gets(ctx, client, h.w.url(one(r, "/v1/services", "/v1/nodes", "/v1/status", "/v1/ips", "/healthz", "/v1/lookup/10.1.0.1"))) != nil {
			break
		}
	}
	return requests
}

// plain is a client that trusts the agent.
func (w *world) plain() *http.Client {
	return &http.Client{Timeout: friendlyTime, Transport: &http.Transport{TLSClientConfig: w.secure}}
}

// url is the URL of a path of the API.
func (w *world) url(path string) string {
	if w.secure != nil {
		return "https://" + w.agent.api + path
	}
	return "http://" + w.agent.api + path
}
