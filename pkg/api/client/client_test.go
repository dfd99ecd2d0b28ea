package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type thing struct {
	Name string `json:"name"`
}

// serve returns a client of a server with this handler.
func serve(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return open(t, Options{Server: s.URL + "/"})
}

func open(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	waittest.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// says returns a handler that responds with this body.
func says(kind string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestGetEscapesThePath(t *testing.T) {
	t.Parallel()
	var asked string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.EscapedPath()
		says("application/json", 200, `{"name":"x"}`)(w, r)
	})
	v, err := Get[thing](t.Context(), c, "v1", "things", "a/b", "c d?")
	if err != nil || v.Name != "x" || asked != "/v1/things/a%2Fb/c%20d%3F" {
		t.Errorf("%+v %v, asked for %s", v, err, asked)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer      http.HandlerFunc
		problem     int // status, 0: not a problem document
		unreachable bool
		text        string
	}{
		"a problem": {
			says(api.MediaTypeProblem, 404, `{"title":"Not Found","status":404,"detail":"there is none"}`), 404, false, "there is none",
		},
		"another server's error":       {says("text/html", 404, "<p>not here"), 0, true, "404 Not Found"},
		"another server's page":        {says("text/html; charset=utf-8", 200, "<p>welcome"), 0, true, "not a mesh-agent"},
		"a problem that is none":       {says(api.MediaTypeProblem, 500, `{`), 0, true, "500"},
		"an answer without a type":     {says("", 200, `{"name":"x"}`), 0, true, "not a mesh-agent"},
		"an answer that breaks off":    {says("application/json", 200, `{"name":`), 0, true, "unexpected EOF"},
		"an answer of something else":  {says("application/json", 200, `[]`), 0, true, "cannot unmarshal"},
		"a connection that breaks off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, true, "EOF"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Get[thing](t.Context(), serve(t, test.answer), "v1", "things")
			p, ok := errors.AsType[*api.Problem](err)
			if ok != (test.problem != 0) || ok && p.Status != test.problem {
				t.Errorf("problem: %v", err)
			}
			if errors.Is(err, ErrUnreachable) != test.unreachable || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	c := serve(t, says("application/json", 200, `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Status(ctx)
	_, err2 := c.SetLogLevel(ctx, "info")
	for _, err := range []error{err, err2} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
			t.Errorf("%v", err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body     string
		want     []string
		revision uint64
		next     string
		fails    string // where it fails: "open", "read", or empty for nowhere
	}{
		"as the agent writes it": {`{"revision":7,"items":[{"name":"a"},{"name":"b"}],"next":"c"}`, []string{"a", "b"}, 7, "c", ""},
		"empty":                  {`{"revision":7,"items":[],"next":""}`, nil, 7, "", ""},
		"with more fields":       {`{"x":{"items":[1]},"revision":7,"items":[{"name":"a"}],"y":[],"next":"c","z":1}`, []string{"a"}, 7, "c", ""},
		"without items":          {`{"revision":7}`, nil, 0, "", "open"},
		"no object":              {`[]`, nil, 0, "", "open"},
		"items that are no list": {`{"items":{}}`, nil, 0, "", "open"},
		"broken off within":      {`{"revision":7,"items":[{"name":"a"},{"na`, []string{"a"}, 7, "", "read"},
		"broken off between":     {`{"revision":7,"items":[{"name":"a"}`, []string{"a"}, 7, "", "read"},
		"broken off at the end":  {`{"revision":7,"items":[{"name":"a"}],"next":"c"`, []string{"a"}, 7, "c", "read"},
		"an item of a wrong type": {
			`{"revision":7,"items":[{"name":"a"},{"name":5}],"next":"c"}`, []string{"a"}, 7, "", "read",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, says("application/json", 200, test.body))
			l, err := List[thing](t.Context(), c, "things", Query{})
			if (err != nil) != (test.fails == "open") {
				t.Fatal(err)
			}
			if err != nil {
				if !errors.Is(err, ErrUnreachable) {
					t.Error(err)
				}
				return
			}
			var got []string
			for v, e := range l.All(t.Context()) {
				if err = e; err == nil {
					got = append(got, v.Name)
				}
			}
			if (err != nil) != (test.fails == "read") || err != nil && !errors.Is(err, ErrUnreachable) {
				t.Errorf("reading: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || l.Revision != test.revision || l.Next() != test.next {
				t.Errorf("revision %d, next %q: %s", l.Revision, l.Next(), diff)
			}
		})
	}
}

func TestListAsks(t *testing.T) {
	t.Parallel()
	var asked string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		says("application/json", 200, `{"items":[{"name":"a"},{"name":"b"}]}`)(w, r)
	})
	q := Query{Cluster: "c2", Namespace: "ns", Name: "a&b", Identity: "7", Prefix: "10.0.0.0/8", Limit: 5, Cursor: "abc"}
	l, err := List[thing](t.Context(), c, "things", q)
	waittest.Must(t, err)
	for range l.All(t.Context()) {
		break // the rest is not needed
	}
	want := "/v1/things?cluster=c2&cursor=abc&identity=7&limit=5&name=a%26b&namespace=ns&prefix=10.0.0.0%2F8"
	if asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
}

func TestServerForms(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"http://a:1":       "http://a:1",
		"http://a:1/":      "http://a:1",
		"https://a/prefix": "https://a/prefix",
		"a:1":              "http://a:1",
		"127.0.0.1:9979":   "http://127.0.0.1:9979",
		"[::1]:9979":       "http://[::1]:9979",
		"ftp://a:1":        "",
		"http://":          "",
		"http://a b":       "",
	} {
		c, err := New(Options{Server: server})
		if want == "" {
			if err == nil {
				t.Errorf("%s: no error", server)
			}
			continue
		}
		if err != nil || c.base != want {
			t.Errorf("%s: %+v %v", server, c, err)
		}
	}
	if _, err := New(Options{Server: "http://a:1", Socket: "/b"}); err == nil {
		t.Error("a server and a socket: no error")
	}
}

// TestPlaces: the client tries the flags, then the default socket, then the default address.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named := func(name string) http.HandlerFunc {
		return says("application/json", 200, fmt.Sprintf(`{"name":%q}`, name))
	}
	onSocket := func(name string) string {
		path := filepath.Join(dir, name+".sock")
		l, err := net.Listen("unix", path)
		waittest.Must(t, err)
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: named(name)}}
		s.Start()
		t.Cleanup(s.Close)
		return path
	}
	given, standard := onSocket("given"), onSocket("standard")
	tcp := httptest.NewServer(named("tcp"))
	t.Cleanup(tcp.Close)
	address := strings.TrimPrefix(tcp.URL, "http://")
	nobody := filepath.Join(dir, "nobody.sock")
	file := filepath.Join(dir, "file")
	waittest.Must(t, os.WriteFile(file, nil, 0o600))
	for name, test := range map[string]struct {
		o    Options
		want string // empty: unreachable
	}{
		"the socket given":               {Options{Socket: given, DefaultSocket: standard, DefaultServer: address}, "given"},
		"the server given":               {Options{Server: tcp.URL, DefaultSocket: standard}, "tcp"},
		"the default socket":             {Options{DefaultSocket: standard, DefaultServer: address}, "standard"},
		"the default address":            {Options{DefaultSocket: nobody, DefaultServer: address}, "tcp"},
		"beside a file":                  {Options{DefaultSocket: file, DefaultServer: address}, "tcp"},
		"no agent anywhere":              {Options{DefaultSocket: nobody, DefaultServer: "127.0.0.1:1"}, ""},
		"no agent where it was asked of": {Options{Socket: nobody, DefaultServer: address}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := Get[thing](t.Context(), open(t, test.o), "v1", "things")
			switch {
			case test.want == "" && !errors.Is(err, ErrUnreachable):
				t.Errorf("%+v %v", v, err)
			case test.want == "" && !strings.Contains(err.Error(), nobody):
				t.Errorf("does not say what was tried: %v", err)
			case test.want != "" && (err != nil || v.Name != test.want):
				t.Errorf("%+v %v, want %s", v, err, test.want)
			}
		})
	}
}

func TestDial(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"name": "cart"}`)
	}))
	t.Cleanup(s.Close)
	c := open(t, Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}})
	got, err := Get[thing](t.Context(), c, "v1", "thing")
	waittest.Must(t, err)
	if got.Name != "cart" {
		t.Errorf("got %q", got.Name)
	}
}
