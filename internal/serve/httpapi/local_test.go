package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// served returns a fixture that answers on both sockets until the end of the
// test, and a client of each.
func served(t *testing.T, options ...Option) (f *fixture, tcp, unix *http.Client) {
	t.Helper()
	return serve(t, newFixture(t, options...))
}

func serve(t *testing.T, f *fixture) (_ *fixture, tcp, unix *http.Client) {
	t.Helper()
	must(t, f.Listen("127.0.0.1:0", filepath.Join(t.TempDir(), "a.sock"), false))
	ctx, cancel := context.WithCancel(context.Background())
	done, taken := make(chan error, 1), make(chan error, 1)
	go func() { done <- f.Serve(ctx) }()
	go func() { taken <- f.View.Run(ctx) }()
	over := func(network, address string) *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}}
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-taken
	})
	return f, over("tcp", f.Address()), over("unix", f.Socket())
}

// ask sends a request and returns the answer with its whole body.
func ask(t *testing.T, c *http.Client, method, path, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	must(t, err)
	resp, err := c.Do(req)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(text)
}

// wantLocal wants a refusal that names the unix socket.
func wantLocal(t *testing.T, f *fixture, resp *http.Response, body string) {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if resp.StatusCode != http.StatusForbidden || p.Status != http.StatusForbidden || !strings.Contains(p.Detail, f.Socket()) ||
		resp.Header.Get("Content-Type") != api.MediaTypeProblem {
		t.Errorf("%d %v %+v", resp.StatusCode, resp.Header, p)
	}
}

func TestTheLogLevelIsChangedOverTheSocketOnly(t *testing.T) {
	t.Parallel()
	f, tcp, unix := served(t)
	resp, body := ask(t, tcp, http.MethodPut, "/v1/log-level", "debug")
	wantLocal(t, f, resp, body)
	if f.LogLevel.Get() != "info" {
		t.Errorf("changed over TCP to %s", f.LogLevel.Get())
	}
	for _, test := range []struct {
		body   string
		status int
		level  string // the level afterwards
		says   string
	}{
		{`{"level":"debug"}`, 200, "debug", `{"level":"debug"}`},
		{"warn\n", 200, "warn", `{"level":"warn"}`},
		{` {"level": "ERROR"} `, 200, "error", `{"level":"error"}`},
		{"loud", 400, "error", "use one of [error warn info debug]"},
		{"", 400, "error", "is unknown"},
		{`{"level":5}`, 400, "error", "plain text"},
		{`{"lvl":"info"}`, 400, "error", "lvl"},
		{"{", 400, "error", "plain text"},
		{strings.Repeat("x", 2000), 400, "error", "too large"},
	} {
		resp, body := ask(t, unix, http.MethodPut, "/v1/log-level", test.body)
		if resp.StatusCode != test.status || !strings.Contains(body, test.says) || f.LogLevel.Get() != test.level {
			t.Errorf("PUT %.40q: %d %s, then %s", test.body, resp.StatusCode, body, f.LogLevel.Get())
		}
	}
	for name, c := range map[string]*http.Client{"tcp": tcp, "unix": unix} {
		if resp, body := ask(t, c, http.MethodGet, "/v1/log-level", ""); resp.StatusCode != 200 || body != "{\"level\":\"error\"}\n" {
			t.Errorf("GET over %s: %d %s", name, resp.StatusCode, body)
		}
	}
	resp, _ = ask(t, unix, http.MethodPost, "/v1/log-level", "info")
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD, PUT" {
		t.Errorf("POST: %d, Allow: %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

// TestUnknownClientsWithoutASocket: the refusal explains how to configure one.
func TestUnknownClientsWithoutASocket(t *testing.T) {
	t.Parallel()
	w := newFixture(t).do(http.MethodPut, "/v1/log-level")
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "--socket") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	f, tcp, unix := served(t, WithProfiles())
	for path, says := range map[string]string{
		"":                  "goroutine",
		"goroutine?debug=1": "goroutine profile:",
		"heap":              "\x1f\x8b", // gzip
		"cmdline":           "api.test",
		"symbol":            "num_symbols",
		"profile?seconds=1": "\x1f\x8b",
		"trace?seconds=0.1": "go 1.",
	} {
		if resp, body := ask(t, unix, http.MethodGet, "/debug/pprof/"+path, ""); resp.StatusCode != 200 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %.200q", path, resp.StatusCode, body)
		}
		resp, body := ask(t, tcp, http.MethodGet, "/debug/pprof/"+path, "")
		wantLocal(t, f, resp, body)
	}
	if resp, _ := ask(t, unix, http.MethodGet, "/debug/pprof/nope", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown profile: %d", resp.StatusCode)
	}
}

func TestNoProfilesUnasked(t *testing.T) {
	t.Parallel()
	_, tcp, unix := served(t)
	for name, c := range map[string]*http.Client{"tcp": tcp, "unix": unix} {
		if resp, _ := ask(t, c, http.MethodGet, "/debug/pprof/", ""); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

// TestWhatIsLocalIsDescribed: the OpenAPI document describes the requests that only the unix socket serves, and their
// refusal over TCP.
func TestWhatIsLocalIsDescribed(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	newFixture(t, WithProfiles()).Handler().ServeHTTP(w, request(http.MethodGet, "/openapi.json"))
	var doc struct {
		Paths map[string]map[string]struct {
			Description string
			RequestBody struct{ Content map[string]any }
			Responses   map[string]any
		}
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &doc))
	put := doc.Paths["/v1/log-level"]["put"]
	if !strings.Contains(put.Description, "unix socket") || put.Responses["403"] == nil || put.Responses["400"] == nil ||
		put.RequestBody.Content["text/plain"] == nil || put.RequestBody.Content["application/json"] == nil {
		t.Errorf("%+v", put)
	}
	if get := doc.Paths["/v1/log-level"]["get"]; get.Description != "" || get.Responses["200"] == nil {
		t.Errorf("%+v", get)
	}
	if doc.Paths["/debug/pprof/profile"]["get"].Responses["403"] == nil {
		t.Error("profiles are not described")
	}
}
