package checks

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// tls examines what protects the sessions.
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

// forClients tells whether a server may take the certificate for a client's: one
// that names no usage is for all.
func forClients(cert *x509.Certificate) bool {
	return len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) == 0 ||
		slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// dates adds what the dates of the client certificate mean.
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
