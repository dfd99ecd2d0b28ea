package transport

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// files are those of a listener, in a directory of their own.
type files struct {
	t     *testing.T
	dir   string
	below *pki.CA
	log   waittest.Output
	tls   *TLS
}

func newFiles(t *testing.T) *files {
	t.Helper()
	f := &files{t: t, dir: t.TempDir()}
	var err error
	f.below, err = pki.NewCA("mesh")
	f.must(err)
	f.tls = NewTLS(TLSFiles{Cert: f.path("server.crt"), Key: f.path("server.key"), ClientCA: f.path("clients.crt")}, slog.New(slog.NewTextHandler(&f.log, nil)))
	f.serve(10 * 365 * day)
	f.write("clients.crt", string(f.below.PEM()))
	return f
}

const day = 24 * time.Hour

func (f *files) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

func (f *files) write(name, text string) { f.must(os.WriteFile(f.path(name), []byte(text), 0o600)) }

// valid returns a certificate, as text, that is valid for this long.
func (f *files) valid(left time.Duration) pki.Pair {
	pair, err := f.below.Server([]string{"127.0.0.1"}, pki.Valid(time.Now().Add(-400*day), time.Now().Add(left)))
	f.must(err)
	return pair
}

// serve writes the certificate, with others above it.
func (f *files) serve(left time.Duration, above ...time.Duration) {
	pair := f.valid(left)
	for _, one := range above {
		pair.Cert = append(pair.Cert, f.valid(one).Cert...)
	}
	_, _, err := pair.Write(f.dir, "server")
	f.must(err)
}

// TestNotices: the notices about the current files, the urgent ones first.
func TestNotices(t *testing.T) {
	t.Parallel()
	reached := make(map[codes.Code]bool)
	for name, test := range map[string]struct {
		change func(*files)
		want   []string // code and a part of the message, of each
	}{
		"all is well":                     {func(*files) {}, nil},
		"an old authority with a new one": {func(f *files) { f.write("clients.crt", string(f.valid(-day).Cert)+string(f.below.PEM())) }, nil},
		"the certificate within 30 days":  {func(f *files) { f.serve(20*day, 4000*day) }, []string{"MESH-7012 server.crt expires"}},
		"the certificate within 7 days":   {func(f *files) { f.serve(2 * day) }, []string{"MESH-7013 server.crt expires"}},
		"the certificate has expired":     {func(f *files) { f.serve(-day) }, []string{"MESH-7013 server.crt expired"}},
		"the first of those above it":     {func(f *files) { f.serve(4000*day, 300*day, 2*day) }, []string{"MESH-7013 a certificate above the first one in"}},
		"the last authority of clients":   {func(f *files) { f.write("clients.crt", string(f.valid(20*day).Cert)+string(f.valid(day).Cert)) }, []string{"MESH-7012 the last authority of clients in"}},
		"no authority of clients":         {func(f *files) { f.write("clients.crt", "") }, []string{"MESH-7014 there is no certificate in"}},
		"another key":                     {func(f *files) { f.write("server.key", string(f.valid(day).Key)) }, []string{"MESH-7014 private key does not match public key"}},
		"half a certificate, and near ends": {func(f *files) {
			f.serve(20*day, day)
			_ = f.tls.Certificates(time.Now())
			f.write("server.crt", "-----BEGIN")
		}, []string{"MESH-7014 those of before stay in use", "MESH-7013 a certificate above", "MESH-7012 server.crt expires"}},
		"a file is gone": {func(f *files) { f.must(os.Remove(f.path("server.key"))) }, []string{"MESH-7014 no such file"}},
		"not valid yet": {func(f *files) {
			pair, err := f.below.Server([]string{"127.0.0.1"}, pki.Valid(time.Now().Add(day), time.Now().Add(400*day)))
			f.must(err)
			_, _, err = pair.Write(f.dir, "server")
			f.must(err)
		}, []string{"MESH-7014 is not valid before"}},
	} {
		f := newFiles(t)
		_ = f.tls.Certificates(time.Now()) // the state at the beginning
		test.change(f)
		got := f.tls.Certificates(time.Now())
		if got.Server == nil || got.ClientAuthority == nil || len(got.Notices) != len(test.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i, n := range got.Notices {
			code, part, _ := strings.Cut(test.want[i], " ")
			if n.Code != code || !strings.Contains(n.Message, part) || n.Remedy == "" {
				t.Errorf("%s: %+v, want %s", name, n, test.want[i])
			}
			reached[codes.Code(n.Code)] = true
		}
	}
	for _, code := range NoticeCodes() {
		if !reached[code] {
			t.Errorf("no case leads to %s", code)
		}
	}
	codestest.Reached(t, codes.Listeners, NoticeCodes()...)
}

// TestBadFilesAreSaidSinceTheyWereSeen: bad files are logged once, and reported with the time at which they were first
// seen, until they are right.
func TestBadFilesAreSaidSinceTheyWereSeen(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	notice := func() string {
		for _, n := range f.tls.Certificates(time.Now()).Notices {
			return n.Message
		}
		return ""
	}
	before := time.Now().UTC().Truncate(time.Second)
	f.write("server.key", "half of")
	first := notice()
	since, err := time.Parse(time.RFC3339, strings.TrimPrefix(strings.Split(first, ",")[0], "since "))
	if err != nil || since.Before(before) || since.After(time.Now()) {
		t.Errorf("%q: %v", first, err)
	}
	if again := notice(); again != first {
		t.Errorf("first %q, then %q", first, again)
	}
	if n := strings.Count(f.log.String(), "Cannot read the certificate"); n != 1 {
		t.Errorf("%d lines: %s", n, f.log.String())
	}
	f.serve(4000 * day)
	if text := notice(); text != "" {
		t.Errorf("when they are right: %s", text)
	}
}

// TestFollow: bad files, and right ones after them, are reported although no client connects.
func TestFollow(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		reports, done := make(chan error), make(chan error, 1) // each report waits to be taken
		go func() { done <- f.tls.Follow(ctx, func(err error) { reports <- err }) }()
		if err := <-reports; err != nil {
			t.Errorf("at the start: %v", err)
		}
		f.write("server.crt", "half of")
		if err := <-reports; err == nil || !strings.Contains(err.Error(), f.path("server.crt")) {
			t.Errorf("with half a certificate: %v", err)
		}
		f.serve(4000 * day)
		if err := <-reports; err != nil {
			t.Errorf("with a new one: %v", err)
		}
		cancel()
		if err := <-done; err != context.Canceled { //nolint:errorlint // it is returned as it is
			t.Error(err)
		}
	})
}

func TestCertificateMetrics(t *testing.T) {
	t.Parallel()
	f := newFiles(t)
	reg := prometheus.NewPedanticRegistry()
	f.must(reg.Register(f.tls.Collector()))
	notices := func(unusable, soon, ends string) string {
		return "# HELP mesh_agent_listener_notice 1 while there is a notice with this code (docs/codes.md) about the certificates of the listeners, else 0.\n# TYPE mesh_agent_listener_notice gauge\n" +
			`mesh_agent_listener_notice{code="MESH-7012"} ` + ends + "\n" + `mesh_agent_listener_notice{code="MESH-7013"} ` + soon + "\n" + `mesh_agent_listener_notice{code="MESH-7014"} ` + unusable + "\n"
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(notices("0", "0", "0")), "mesh_agent_listener_notice"); err != nil {
		t.Error(err)
	}
	f.serve(20*day, day)
	_ = f.tls.Certificates(time.Now())
	f.write("server.key", "half of")
	if err := testutil.GatherAndCompare(reg, strings.NewReader(notices("1", "1", "1")), "mesh_agent_listener_notice"); err != nil {
		t.Error(err)
	}
	families, err := reg.Gather()
	f.must(err)
	left := make(map[string]time.Duration)
	for _, family := range families {
		if family.GetName() != "mesh_agent_listener_certificate_expiry_timestamp_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			left[m.GetLabel()[0].GetValue()] = time.Until(time.Unix(int64(m.GetGauge().GetValue()), 0)).Round(day)
		}
	}
	if len(left) != 3 || left["server"] != 20*day || left["authority"] != day || left["client-authority"] != 3650*day {
		t.Errorf("%v", left)
	}
}
