package checks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// gathered are the codes that the tests of this package lead to.
type gathered struct {
	mu    sync.Mutex
	codes []codes.Code
}

// add takes the findings of a report, without those of other packages.
func (g *gathered) add(r *Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := r.Findings
	for _, f := range r.Files {
		all = append(all, f.Findings...)
	}
	for _, f := range all {
		if e, _ := codes.Find(string(f.Code)); e.Owner == codes.Checks {
			g.codes = append(g.codes, f.Code)
		}
	}
}

// TestFindings goes through all situations, which together lead to every code.
func TestFindings(t *testing.T) {
	t.Parallel()
	var all gathered
	t.Run("all", func(t *testing.T) {
		for name, check := range map[string]func(*testing.T, *gathered){
			"client files": checkClientFiles, "certificates": checkCertificates, "keys": checkKeys, "entries": checkEntries,
			"forbidden": checkForbidden, "overlooked": checkOverlooked, "contents of PEM": checkPEM, "servers": checkServers, "the running agent": checkDiff,
			"the claim policy file": checkPolicy,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				check(t, &all)
			})
		}
	})
	codestest.Reached(t, codes.Checks, all.codes...)
}

// world is a mesh directory, with an authority next to it.
type world struct {
	t        *testing.T
	dir, tls string
	ca       *pki.CA
	caFile   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ca, err := pki.NewCA("mesh CA")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), tls: t.TempDir(), ca: ca}
	if w.caFile, err = ca.Write(w.tls, "ca"); err != nil {
		t.Fatal(err)
	}
	return w
}

// file writes a file of the mesh directory.
func (w *world) file(name string, lines ...string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// client issues a certificate and returns the lines that name it.
func (w *world) client(name string, opts ...pki.Option) (lines []string, key string) {
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

// report checks the directory at a moment.
func (w *world) report(now time.Time) *Report {
	w.t.Helper()
	r, err := Directory(w.dir, "own", now)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// of returns what a report says of one file.
func (r *Report) of(t *testing.T, name string) *File {
	t.Helper()
	i := slices.IndexFunc(r.Files, func(f File) bool { return filepath.Base(f.File) == name })
	if i < 0 {
		t.Fatalf("%s is not in %+v", name, r.Files)
	}
	return &r.Files[i]
}

// found is a finding that is expected: its code, and a part of its message.
type found struct {
	code codes.Code
	part string
}

// wantFindings wants exactly these, in this order, each with a remedy.
func wantFindings(t *testing.T, got []codes.Finding, want []found) {
	t.Helper()
	severities := codes.Severities()
	var texts []string
	for _, f := range got {
		texts = append(texts, f.String())
		if f.Severity != severities[f.Code] || f.Remedy == "" {
			t.Errorf("%+v", f)
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %q, want %v", texts, want)
		return
	}
	for i, w := range want {
		if got[i].Code != w.code || !strings.Contains(got[i].Message, w.part) {
			t.Errorf("%s, want %s: %s", texts[i], w.code, w.part)
		}
	}
}
