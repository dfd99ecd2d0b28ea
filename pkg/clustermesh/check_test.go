package clustermesh

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/pki"
)

// checkWorld is a mesh directory, with an authority beside it.
type checkWorld struct {
	t        *testing.T
	dir, tls string
	ca       *pki.CA
	caFile   string
}

func newCheckWorld(t *testing.T) *checkWorld {
	t.Helper()
	ca, err := pki.NewCA("mesh CA")
	if err != nil {
		t.Fatal(err)
	}
	w := &checkWorld{t: t, dir: t.TempDir(), tls: t.TempDir(), ca: ca}
	if w.caFile, err = ca.Write(w.tls, "ca"); err != nil {
		t.Fatal(err)
	}
	return w
}

// file writes a file of the mesh directory.
func (w *checkWorld) file(name string, lines ...string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// client issues a certificate and returns the lines that name it.
func (w *checkWorld) client(name string, opts ...pki.Option) (lines []string, key string) {
	w.t.Helper()
	pair, err := w.ca.Client(name, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	cert, key, err := pair.Write(w.tls, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return []string{"trusted-ca-file: " + w.caFile, "cert-file: " + cert, "key-file: " + key}, key
}

// check returns what is found of one file.
func (w *checkWorld) check(name string, now time.Time) CheckedFile {
	w.t.Helper()
	c, err := Check(w.dir, "own", now)
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(c.Files, func(f CheckedFile) bool { return f.File == filepath.Join(w.dir, name) })
	if i < 0 {
		w.t.Fatalf("%s is not in %+v", name, c.Files)
	}
	return c.Files[i]
}

func TestCheckOfClientFiles(t *testing.T) {
	t.Parallel()
	const https = "endpoints: ['https://c2.mesh.cilium.io:2379']"
	ca := "trusted-ca-file: CA"
	for name, test := range map[string]struct {
		lines                   []string
		errors, warnings, notes []string // a part of each
	}{
		"well":                       {lines: []string{https, ca}},
		"plain":                      {lines: []string{"endpoints: ['http://192.0.2.1:2379']"}, warnings: []string{"http://192.0.2.1:2379 is not encrypted"}},
		"plain, by option":           {lines: []string{"endpoints: ['192.0.2.1:2379']", "insecure-transport: true"}, warnings: []string{"192.0.2.1:2379 is not encrypted"}},
		"plain on a loopback":        {lines: []string{"endpoints: ['http://127.0.0.3:2379']"}},
		"plain on the loopback's v6": {lines: []string{"endpoints: ['http://[::1]:2379']"}},
		"plain on localhost":         {lines: []string{"endpoints: ['http://localhost:2379']"}},
		"a socket":                   {lines: []string{"endpoints: ['unix:///run/etcd.sock']", "insecure-transport: true"}},
		"two endpoints":              {lines: []string{"endpoints: ['https://a:1', 'https://b:1']", ca}, warnings: []string{"there are 2"}},
		"believes everybody":         {lines: []string{https, "insecure-skip-tls-verify: true"}, warnings: []string{"whoever answers"}},
		"the system's authorities":   {lines: []string{https}, notes: []string{"no trusted-ca-file"}},
		"no endpoints":               {lines: []string{"endpoints: []"}, errors: []string{"at least one is needed"}},
		"no YAML":                    {lines: []string{"endpoints: [x"}, errors: []string{"yaml: line 1"}},
		"no URL":                     {lines: []string{"endpoints: ['ftp://x:1']"}, errors: []string{`"ftp://x:1": the scheme`}},
		"no port":                    {lines: []string{"endpoints: ['https://x']"}, errors: []string{"host and port"}},
		"an unknown option":          {lines: []string{https, ca, "trusted-ca: x"}, errors: []string{"trusted-ca: unknown option"}},
		"a wrong type":               {lines: []string{https, "username: [x]"}, errors: []string{"username: "}},
		"several at once":            {lines: []string{"endpoints: []", "x: 1", "trusted-ca-file: /nope"}, errors: []string{"x: unknown", "at least one", "/nope"}},
		"no authority":               {lines: []string{https, "trusted-ca-file: /nope"}, errors: []string{"/nope"}},
		"no certificate":             {lines: []string{https, "cert-file: /nope1", "key-file: /nope2"}, errors: []string{"/nope1", "/nope2"}},
		"a key alone":                {lines: []string{https, "key-file: /nope"}, errors: []string{"cert-file is needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCheckWorld(t)
			for i := range test.lines {
				test.lines[i] = strings.ReplaceAll(test.lines[i], "CA", w.caFile)
			}
			w.file("c2", test.lines...)
			f := w.check("c2", time.Now())
			wantTexts(t, "errors", test.errors, f.Errors)
			wantTexts(t, "warnings", test.warnings, f.Warnings)
			wantTexts(t, "notes", test.notes, f.Notes)
			if fails := f.Verdict == CheckFail; f.Cluster != "c2" || fails != (len(test.errors) > 0) || f.Verdict == CheckIgnore {
				t.Errorf("%+v", f)
			}
		})
	}
}

// wantTexts wants as many texts, each with its part.
func wantTexts(t *testing.T, what string, want, got []string) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %q, want %q", what, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: %q is not in %q", what, want[i], got[i])
		}
	}
}

func TestCheckOfCertificates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	valid := func(from, to time.Duration) pki.Option { return pki.Valid(now.Add(from), now.Add(to)) }
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		valid            pki.Option
		at               time.Time
		errors, warnings []string
	}{
		"good":                  {valid: valid(-day, 90*day), at: now},
		"about to expire":       {valid: valid(-day, 10*day+time.Hour), at: now, warnings: []string{"expires on " + now.Add(10*day+time.Hour).UTC().Format(time.DateOnly) + ", in 10 days"}},
		"expired":               {valid: pki.Expired(), at: now, errors: []string{"the certificate expired on "}},
		"not yet valid":         {valid: valid(day, 90*day), at: now, errors: []string{"is not valid before"}},
		"an expired authority":  {valid: valid(-day, 20*365*day), at: now.Add(11 * 365 * day), errors: []string{"its last authority expired"}},
		"an authority near end": {valid: valid(-day, 20*365*day), at: now.Add(10*365*day - 5*day - time.Hour), warnings: []string{"its last authority expires"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCheckWorld(t)
			lines, _ := w.client("remote", test.valid)
			w.file("c2", append(lines, "endpoints: ['https://x:1']")...)
			f := w.check("c2", test.at)
			wantTexts(t, "errors", test.errors, f.Errors)
			wantTexts(t, "warnings", test.warnings, f.Warnings)
			if f.User != "remote (certificate)" || f.CertificateExpires == nil {
				t.Errorf("%+v", f)
			}
			// Without TLS none of it matters.
			w.file("c2", append(lines, "endpoints: ['http://127.0.0.1:1']")...)
			if f := w.check("c2", test.at); len(f.Errors)+len(f.Warnings) > 0 || f.User != "nobody" {
				t.Errorf("without TLS: %+v", f)
			}
		})
	}
}

func TestCheckOfKeys(t *testing.T) {
	t.Parallel()
	w := newCheckWorld(t)
	one, key := w.client("one")
	two, _ := w.client("two")
	w.file("c2", append(one[:2:2], two[2], "endpoints: ['https://x:1']")...)
	wantTexts(t, "errors", []string{"private key does not match"}, w.check("c2", time.Now()).Errors)

	w.file("c2", append(one, "endpoints: ['https://x:1']")...)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	f := w.check("c2", time.Now())
	wantTexts(t, "errors", nil, f.Errors)
	wantTexts(t, "warnings", []string{"key-file: \"" + key + "\" can be read by everybody on this machine (mode 0644)"}, f.Warnings)

	w.file("c3", "endpoints: ['http://127.0.0.1:1']", "username: x", "password: secret")
	if err := os.Chmod(filepath.Join(w.dir, "c3"), 0o604); err != nil {
		t.Fatal(err)
	}
	f = w.check("c3", time.Now())
	wantTexts(t, "warnings", []string{"password: "}, f.Warnings)
	if f.User != "x (password)" || strings.Contains(strings.Join(f.Warnings, ""), "secret") {
		t.Errorf("%+v", f)
	}
}

// TestCheckAgreesWithTheAgent: what a scan takes for a cluster, the check does,
// and nothing else.
func TestCheckAgreesWithTheAgent(t *testing.T) {
	t.Parallel()
	w := newCheckWorld(t)
	const client = "endpoints: ['http://127.0.0.1:1']"
	w.file("c2", client)
	w.file("c3", client)
	w.file("own", client)
	w.file("Bad_Name", client)
	w.file("broken", "endpoints: [")
	w.file("ca.crt", "no marker")
	w.file("empty")
	w.file("huge", client, strings.Repeat("#", maxConfig))
	for name, target := range map[string]string{"link": "c2", "dangling": "nope", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(w.dir, "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := scan(w.dir, "own")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Check(w.dir, "own", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	agent, check := map[string]bool{}, map[string]bool{}
	for name := range l.files {
		agent[name] = true
	}
	verdicts := map[string]string{}
	for _, f := range c.Files {
		verdicts[filepath.Base(f.File)] = f.Verdict
		if f.Verdict != CheckIgnore {
			check[f.Cluster] = true
		} else if f.Reason == "" {
			t.Errorf("%s is ignored without a reason", f.File)
		}
	}
	if diff := cmp.Diff(agent, check); diff != "" {
		t.Errorf("agent and check differ:\n%s", diff)
	}
	want := map[string]string{
		"c2": "connect", "c3": "connect", "link": "connect", "broken": "fail", "loop": "fail",
		"own": "ignore", "Bad_Name": "ignore", "ca.crt": "ignore", "empty": "ignore", "huge": "ignore", "dangling": "ignore", "..data": "ignore",
	}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Error(diff)
	}
	if c.Errors != 3 || c.Warnings != 0 {
		t.Errorf("%d errors, %d warnings: %+v", c.Errors, c.Warnings, c.Files)
	}
	wantTexts(t, "notes of c3", []string{"the same contents as c2"}, w.check("c3", time.Now()).Notes)
}

func TestCheckWithoutADirectory(t *testing.T) {
	t.Parallel()
	if _, err := Check(filepath.Join(t.TempDir(), "nope"), "own", time.Now()); err == nil || !strings.Contains(err.Error(), "mesh directory") {
		t.Error(err)
	}
}
