package checks

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// client examines a client file. Content that the agent's own reader refuses is an error, in the reader's words; the
// other findings are about content that it accepts.
func (f *File) client(path, own string, now time.Time) {
	cfg, err := clientfile.Load(path)
	if err != nil {
		f.refused(err)
		return
	}
	encrypted := false
	for _, url := range cfg.Endpoints {
		tls := cfg.UsesTLS(url)
		encrypted = encrypted || tls
		f.Endpoints = append(f.Endpoints, Endpoint{url, tls})
		f.endpoint(cfg, url, tls)
	}
	if n := len(cfg.Endpoints); n > 1 {
		f.add(codes.SeveralEndpoints, fmt.Sprintf("endpoints: there are %d; a session uses one at a time, and the next one when it fails", n), "")
	}
	s, err := cfg.Security()
	if err != nil {
		f.refused(err) // gone since it was loaded
		return
	}
	f.User = cfg.User()
	f.user(cfg.UserName(), own)
	if s.Username != "" {
		f.secret("password", path)
	}
	if encrypted {
		f.tls(s, now)
	}
}

func (f *File) refused(err error) {
	problems := []error{err}
	if refused, ok := errors.AsType[*clientfile.Error](err); ok {
		problems = refused.Problems
	}
	for _, p := range problems {
		f.add(cmp.Or(hint.Code(p), codes.ClientFileOption), strings.Join(strings.Fields(p.Error()), " "), hint.Text(p))
	}
}

// secret warns of a secret that all users of this machine can read.
func (f *File) secret(what, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		f.add(codes.SecretReadable, fmt.Sprintf("%s: %q can be read by all users of this machine (mode %04o)", what, path, info.Mode().Perm()),
			"take that away: chmod o-r "+codes.Quote(path)+" (in a Secret's volume, with defaultMode)")
	}
}

// user notes a name that Cilium gives no reader. The servers that it makes have
// "remote", or one user for each cluster that reads, and "local-" with the own
// cluster's name for its copies of others (spec wire.md §0).
func (f *File) user(name, own string) {
	if slices.Contains([]string{"", "remote", "remote-" + own, "local", "local-" + own}, name) {
		return
	}
	f.add(codes.UnusualUser, fmt.Sprintf("the user is %q; Cilium's for the cluster %q are remote, remote-%[2]s and local-%[2]s", name, own), "")
}

// endpoint examines an endpoint without a request to a server.
func (f *File) endpoint(cfg *clientfile.Config, endpoint string, tls bool) {
	if !tls && !clientfile.OnThisMachine(endpoint) {
		f.add(codes.EndpointPlain, fmt.Sprintf("endpoints: %s is not encrypted: %s", endpoint, clientfile.PlainRisk), "")
	}
	host := hostOf(endpoint)
	if host == "" || slices.ContainsFunc(cfg.HostAliases, func(a clientfile.HostAlias) bool { return a.Hostname == host }) {
		return
	}
	if _, err := netip.ParseAddr(host); err == nil {
		if tls && !clientfile.OnThisMachine(endpoint) {
			f.add(codes.EndpointIsAddress, fmt.Sprintf("endpoints: %s has an address and no name: the server's certificate must be for %s", endpoint, host), "")
		}
		return
	}
	if why := notAName(host); why != "" {
		f.add(codes.EndpointHostImpossible, fmt.Sprintf("endpoints: %s: the host %q can be no name: %s", endpoint, host, why), "")
	}
}

// hostOf is the host of an endpoint that the agent's reader has accepted; empty for a socket.
func hostOf(endpoint string) string {
	if strings.HasPrefix(endpoint, "unix") {
		return ""
	}
	if strings.Contains(endpoint, "://") {
		u, err := url.Parse(endpoint)
		if err != nil {
			return ""
		}
		return u.Hostname()
	}
	host, _, _ := net.SplitHostPort(endpoint) // it was accepted with a port
	return host
}

// notAName says why DNS cannot have a name (RFC 1035, 2.3; underscores are in
// use), empty when it can.
func notAName(host string) string {
	host = strings.TrimSuffix(host, ".")
	if len(host) > 253 {
		return fmt.Sprintf("it has %d characters, and 253 are the most", len(host))
	}
	for label := range strings.SplitSeq(host, ".") {
		switch {
		case label == "":
			return "there is nothing between two of its dots"
		case len(label) > 63:
			return fmt.Sprintf("%q has %d characters, and 63 are the most", label, len(label))
		case label[0] == '-' || label[len(label)-1] == '-':
			return fmt.Sprintf("%q begins or ends with a hyphen", label)
		case strings.ContainsFunc(label, func(c rune) bool { return !inName(c) }):
			return fmt.Sprintf("%q has characters that are in no name", label)
		}
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; !strings.ContainsFunc(last, func(c rune) bool { return c < '0' || c > '9' }) {
		return "it looks like an address and is none"
	}
	return ""
}

func inName(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (f *File) tls(s clientfile.Security, now time.Time) {
	switch {
	case s.SkipVerify:
		f.add(codes.ServerNotVerified, "insecure-skip-tls-verify: "+clientfile.SkipVerifyRisk, "")
	case s.CAFile == "":
		f.add(codes.SystemAuthorities, "no trusted-ca-file: the authorities that this system trusts are asked", "")
	default:
		f.authorities(s, now)
	}
	if s.KeyFile != "" {
		f.secret("key-file", s.KeyFile)
	}
	if len(s.Chain) == 0 {
		return
	}
	f.CertificateExpires = &s.Chain[0].NotAfter
	if !forClients(s.Chain[0]) {
		f.add(codes.CertificateNotForClients, fmt.Sprintf("cert-file: %q: the certificate of %s is not for clients: its extended key usage is without clientAuth",
			s.CertFile, s.Chain[0].Subject.CommonName), "")
	}
	for i, cert := range s.Chain {
		what := "the certificate"
		if i > 0 {
			what = "the authority " + cert.Subject.CommonName + " in it"
		}
		f.dates(s.CertFile, what, clientfile.ValidityOf(cert, now))
	}
}

// forClients reports whether a server may take the certificate for a client's: one
// that names no usage is for all.
func forClients(cert *x509.Certificate) bool {
	return len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) == 0 ||
		slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

func (f *File) dates(file, what string, v clientfile.Validity) {
	text := fmt.Sprintf("cert-file: %q: %s %s", file, what, v.Text)
	switch {
	case v.NotYet:
		f.add(codes.CertificateNotYetValid, text, v.Remedy)
	case v.Invalid:
		f.add(codes.CertificateExpired, text, v.Remedy)
	case v.Soon:
		f.add(codes.CertificateExpiresSoon, text, v.Remedy)
	}
}

// authorities looks for one that can vouch for a server, now and soon.
func (f *File) authorities(s clientfile.Security, now time.Time) {
	if len(s.Authorities) == 0 {
		return
	}
	last := slices.MaxFunc(s.Authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	switch v := clientfile.ValidityOf(last, now); {
	case v.Invalid:
		f.add(codes.AuthoritiesExpired, fmt.Sprintf("trusted-ca-file: %q: its last authority %s: no server's certificate will be accepted", s.CAFile, v.Text), "")
	case v.Soon:
		f.add(codes.AuthoritiesExpireSoon, fmt.Sprintf("trusted-ca-file: %q: its last authority %s", s.CAFile, v.Text), "")
	}
}
