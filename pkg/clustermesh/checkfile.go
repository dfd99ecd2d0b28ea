package clustermesh

import (
	"crypto/x509"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// checkClient examines a client file. What the agent's own reader refuses is an
// error in its words; the rest is what the reader lets pass.
func (f *CheckedFile) checkClient(path string, now time.Time) {
	cfg, err := kvstore.LoadConfig(path)
	if err != nil {
		problems := []error{err}
		if refused, ok := errors.AsType[*kvstore.ConfigError](err); ok {
			problems = refused.Problems
		}
		for _, p := range problems {
			f.fault("%s", strings.Join(strings.Fields(p.Error()), " "))
		}
		return
	}
	encrypted := false
	for _, ep := range cfg.Endpoints {
		tls := cfg.UsesTLS(ep)
		encrypted = encrypted || tls
		f.Endpoints = append(f.Endpoints, CheckedEndpoint{ep, tls})
		if !tls && !kvstore.OnThisMachine(ep) {
			f.warn("endpoints: %s is not encrypted: %s", ep, kvstore.PlainRisk)
		}
	}
	if n := len(cfg.Endpoints); n > 1 {
		f.warn("endpoints: there are %d; a session uses one at a time, and the next one when it fails", n)
	}
	s, err := cfg.Security()
	if err != nil {
		f.fault("%v", err) // gone since it was loaded
		return
	}
	f.User = cfg.User()
	if s.Username != "" {
		f.checkSecret("password", path)
	}
	if encrypted {
		f.checkTLS(s, now)
	}
}

func (f *CheckedFile) checkTLS(s kvstore.Security, now time.Time) {
	switch {
	case s.SkipVerify:
		f.warn("insecure-skip-tls-verify: %s", kvstore.SkipVerifyRisk)
	case s.CAFile == "":
		f.note("no trusted-ca-file: the authorities that this system trusts are asked")
	default:
		f.checkAuthorities(s, now)
	}
	if s.KeyFile != "" {
		f.checkSecret("key-file", s.KeyFile)
	}
	if len(s.Chain) == 0 {
		return
	}
	f.CertificateExpires = &s.Chain[0].NotAfter
	for i, cert := range s.Chain {
		what := "the certificate"
		if i > 0 {
			what = "the authority " + cert.Subject.CommonName + " in it"
		}
		switch v := kvstore.ValidityOf(cert, now); {
		case v.Invalid:
			f.fault("cert-file: %q: %s %s: %s", s.CertFile, what, v.Text, v.Remedy)
		case v.Soon:
			f.warn("cert-file: %q: %s %s", s.CertFile, what, v.Text)
		}
	}
}

// checkAuthorities looks for one that can vouch for a server, now and soon.
func (f *CheckedFile) checkAuthorities(s kvstore.Security, now time.Time) {
	if len(s.Authorities) == 0 {
		return
	}
	last := slices.MaxFunc(s.Authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	switch v := kvstore.ValidityOf(last, now); {
	case v.Invalid:
		f.fault("trusted-ca-file: %q: its last authority %s: no server's certificate will be accepted", s.CAFile, v.Text)
	case v.Soon:
		f.warn("trusted-ca-file: %q: its last authority %s", s.CAFile, v.Text)
	}
}

// checkSecret warns of a secret that everybody on this machine can read.
func (f *CheckedFile) checkSecret(what, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		f.warn("%s: %q can be read by everybody on this machine (mode %04o): take that away (in a Secret's volume, with defaultMode)",
			what, path, info.Mode().Perm())
	}
}
