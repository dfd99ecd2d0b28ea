package clustermesh

import (
	"crypto/x509"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// soon is how long before its end a certificate is warned of.
const soon = 30 * 24 * time.Hour

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
		if !tls && !local(ep) {
			f.warn("endpoints: %s is not encrypted: everybody on the way can read and change what it says", ep)
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
	f.User = user(s, encrypted)
	if s.Username != "" {
		f.checkSecret("password", path)
	}
	if encrypted {
		f.checkTLS(s, now)
	}
}

// local tells whether an endpoint is on this machine.
func local(endpoint string) bool {
	if strings.HasPrefix(endpoint, "unix") {
		return true
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "http://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// user says who the agent would be to that etcd.
func user(s kvstore.Security, encrypted bool) string {
	switch {
	case s.Username != "":
		return s.Username + " (password)"
	case encrypted && len(s.Chain) > 0:
		return s.Chain[0].Subject.CommonName + " (certificate)"
	default:
		return "nobody"
	}
}

func (f *CheckedFile) checkTLS(s kvstore.Security, now time.Time) {
	switch {
	case s.SkipVerify:
		f.warn("insecure-skip-tls-verify: whoever answers at the endpoint is believed")
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
		switch end := cert.NotAfter; {
		case now.After(end):
			f.fault("cert-file: %q: %s expired on %s: renew it", s.CertFile, what, day(end))
		case now.Before(cert.NotBefore):
			f.fault("cert-file: %q: %s is not valid before %s: wait, or set the clock", s.CertFile, what, cert.NotBefore.UTC().Format(time.RFC3339))
		case now.Add(soon).After(end):
			f.warn("cert-file: %q: %s expires on %s, in %d days", s.CertFile, what, day(end), int(end.Sub(now).Hours()/24))
		}
	}
}

// checkAuthorities looks for one that can vouch for a server, now and soon.
func (f *CheckedFile) checkAuthorities(s kvstore.Security, now time.Time) {
	if len(s.Authorities) == 0 {
		return
	}
	last := slices.MaxFunc(s.Authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	switch end := last.NotAfter; {
	case now.After(end):
		f.fault("trusted-ca-file: %q: its last authority expired on %s: no server's certificate will be accepted", s.CAFile, day(end))
	case now.Add(soon).After(end):
		f.warn("trusted-ca-file: %q: its last authority expires on %s, in %d days", s.CAFile, day(end), int(end.Sub(now).Hours()/24))
	}
}

// checkSecret warns of a secret that everybody on this machine can read.
func (f *CheckedFile) checkSecret(what, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		f.warn("%s: %q can be read by everybody on this machine (mode %04o): take that away (in a Secret's volume, with defaultMode)",
			what, path, info.Mode().Perm())
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
