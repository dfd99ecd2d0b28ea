package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// authority is a CA whose files are in dir.
type authority struct {
	*pki.CA
	dir string
}

func newAuthority(t *testing.T, dir string) authority {
	t.Helper()
	ca, err := pki.NewCA("mesh")
	must(t, err)
	return authority{ca, dir}
}

// serves writes a certificate for these hosts, and the authority, as files of a server.
func (a authority) serves(t *testing.T, hosts ...string) transport.TLSFiles {
	t.Helper()
	pair, err := a.Server(hosts)
	must(t, err)
	cert, key, err := pair.Write(a.dir, "server")
	must(t, err)
	ca, err := a.Write(a.dir, "ca")
	must(t, err)
	return transport.TLSFiles{Cert: cert, Key: key, ClientCA: ca}
}

// listens returns a listener's TLS that reads these files.
func (a authority) listens(t *testing.T, hosts ...string) *transport.TLS {
	t.Helper()
	return transport.NewTLS(a.serves(t, hosts...), silent())
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// client is one with a certificate of signer, or without one, that trusts a.
func (a authority) client(t *testing.T, signer *pki.CA) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	if signer != nil {
		pair, err := signer.Client("prometheus")
		must(t, err)
		cert, err := pair.TLS()
		must(t, err)
		config.Certificates = []tls.Certificate{cert}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
}

func status(c *http.Client, url, host string) (int, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	r.Host = host
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, t.TempDir()), newAuthority(t, t.TempDir())
	f, _, unix := served(t, WithTLS(ours.listens(t, "127.0.0.1", "agent.example", "*.mesh.example")))
	url := "https://" + f.Address() + "/v1/status"
	for _, test := range []struct {
		name   string
		client *http.Client
		host   string
		want   int // 0 for no connection
	}{
		{"one of ours", ours.client(t, ours.CA), "", 200},
		{"by the certificate's name", ours.client(t, ours.CA), "agent.example:443", 200},
		{"by a name of its wildcard", ours.client(t, ours.CA), "a.mesh.example", 200},
		{"by another name", ours.client(t, ours.CA), "evil.example", 421},
		{"without a certificate", ours.client(t, nil), "", 0},
		{"with another authority's", ours.client(t, theirs.CA), "", 0},
	} {
		got, err := status(test.client, url, test.host)
		if got != test.want || (err != nil) != (test.want == 0) {
			t.Errorf("%s: %d %v", test.name, got, err)
		}
	}
	if got, err := status(new(http.Client), "http://"+f.Address()+"/v1/status", ""); got == http.StatusOK {
		t.Errorf("in plain text: %d %v", got, err)
	}
	if got, err := status(unix, "http://localhost/v1/status", ""); got != http.StatusOK {
		t.Errorf("over the unix socket: %d %v", got, err)
	}
	// A watch hijacks the connection, and its output is bounded over TLS too.
	resp, err := ours.client(t, ours.CA).Get("https://" + f.Address() + "/v1/watch?resource=nodes")
	if err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 1 {
		t.Fatalf("%+v %v", resp, err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(io.LimitReader(resp.Body, 20)); err != nil || !strings.HasPrefix(string(b), "id: ") {
		t.Errorf("%q %v", b, err)
	}
}

func TestTLSWithoutClientCertificates(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, t.TempDir())
	files := ours.serves(t, "127.0.0.1")
	files.ClientCA = ""
	f, _, _ := served(t, WithTLS(transport.NewTLS(files, silent())))
	if got, err := status(ours.client(t, nil), "https://"+f.Address()+"/healthz", ""); got != http.StatusOK {
		t.Errorf("%d %v", got, err)
	}
}

// TestCertificatesAreReadAgain: a rotated certificate and another authority apply from the next connection on; files
// that cannot be used change nothing.
func TestCertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, after := newAuthority(t, dir), newAuthority(t, dir)
	var log waittest.Output
	secure := transport.NewTLS(before.serves(t, "127.0.0.1"), slog.New(slog.NewTextHandler(&log, nil)))
	f, _, _ := served(t, WithTLS(secure))
	url := "https://" + f.Address() + "/healthz"
	want := func(what string, a authority, ok bool) {
		t.Helper()
		if got, err := status(a.client(t, a.CA), url, ""); (got == http.StatusOK) != ok {
			t.Errorf("%s: %d %v", what, got, err)
		}
	}
	want("the first", before, true)
	must(t, os.WriteFile(filepath.Join(dir, "server.key"), []byte("half of"), 0o600))
	want("the first, while its key is replaced", before, true)
	want("again", before, true)
	after.serves(t, "127.0.0.1", "new.example")
	want("the second", after, true)
	want("the first, after that", before, false)
	if text := log.String(); strings.Count(text, "Cannot read the certificate of the API again") != 1 {
		t.Errorf("want one warning: %s", text)
	}
}

func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := newAuthority(t, dir).serves(t, "127.0.0.1")
	none := filepath.Join(dir, "none")
	for what, files := range map[string]transport.TLSFiles{
		"no certificate":  {Cert: none, Key: good.Key},
		"another file":    {Cert: good.Key, Key: good.Key},
		"no authorities":  {Cert: good.Cert, Key: good.Key, ClientCA: none},
		"no authority in": {Cert: good.Cert, Key: good.Key, ClientCA: good.Key},
	} {
		f := newFixture(t, WithTLS(transport.NewTLS(files, silent())))
		err := f.Listen("127.0.0.1:0", "", false)
		if e, ok := errors.AsType[*transport.ListenError](err); !ok || !strings.Contains(e.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestAWatchEndsWithTheServerOverTLS: the server does not wait for the end of a watch.
func TestAWatchEndsWithTheServerOverTLS(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, t.TempDir())
	f := newFixture(t, WithTLS(ours.listens(t, "127.0.0.1")))
	must(t, f.Listen("127.0.0.1:0", "", false))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx) }()
	resp, err := ours.client(t, ours.CA).Get("https://" + f.Address() + "/v1/watch")
	must(t, err)
	defer resp.Body.Close()
	cancel()
	if err := waittest.Receive(t, "the end", done); err != nil {
		t.Error(err)
	}
}

// TestStatusHasTheCertificatesOfTheListeners: the status has their expiry, and the error that the next connection would
// fail with.
func TestStatusHasTheCertificatesOfTheListeners(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, t.TempDir())
	f, _, _ := served(t, WithTLS(ours.listens(t, "127.0.0.1")))
	renew := func(left time.Duration) {
		pair, err := ours.Server([]string{"127.0.0.1"}, pki.Valid(epoch.Add(-time.Hour), epoch.Add(left)))
		must(t, err)
		_, _, err = pair.Write(ours.dir, "server")
		must(t, err)
	}
	renew(4000 * 24 * time.Hour)
	st := object[api.Status](t, f, "/v1/status")
	if st.TLS == nil || st.TLS.Server == nil || st.TLS.ClientAuthority == nil || st.TLS.Authority != nil || len(st.TLS.Notices) > 0 {
		t.Fatalf("%+v", st.TLS)
	}
	renew(48 * time.Hour)
	st = object[api.Status](t, f, "/v1/status")
	if !st.TLS.Server.Equal(epoch.Add(48*time.Hour)) || len(st.TLS.Notices) != 1 || st.TLS.Notices[0].Code != string(codes.ListenerCertificateEndsSoon) {
		t.Errorf("%+v", st.TLS)
	}
	if want := "a certificate of the agent's listeners expires within 7 days, or has expired (this agent)"; !strings.Contains(st.Reason, want) {
		t.Errorf("the first line is %q, without %s", st.Reason, want)
	}
	if plain := object[api.Status](t, newFixture(t), "/v1/status"); plain.TLS != nil {
		t.Errorf("without TLS: %+v", plain.TLS)
	}
}
