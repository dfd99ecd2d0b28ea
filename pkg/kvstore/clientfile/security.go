package clientfile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/expiry"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// The risks of a configuration.
const (
	// PlainRisk is the risk of an endpoint without TLS on another machine.
	PlainRisk = "all machines on the path can read and change the data"
	// SkipVerifyRisk is the risk of insecure-skip-tls-verify.
	SkipVerifyRisk = "the agent trusts any server that answers at the endpoint"
)

// Security describes how a configuration protects its sessions, without secrets.
type Security struct {
	// Username is the user of password authentication, empty for none.
	Username string
	// SkipVerify: the server's certificate is not verified.
	SkipVerify bool
	// CAFile, CertFile and KeyFile are paths, empty for none.
	CAFile, CertFile, KeyFile string
	// Authorities are the certificates in CAFile. Chain is the client's certificate and the
	// certificates after it in CertFile. Both are empty without a file, and with insecure-transport.
	Authorities, Chain []*x509.Certificate
}

// Security reads the current certificates that the configuration names. It returns the readable ones
// together with the error about the others.
func (c *Config) Security() (Security, error) {
	f := &c.fields
	s := Security{
		Username: f.Username, SkipVerify: f.InsecureSkipTLSVerify,
		CAFile: f.TrustedCAFile, CertFile: f.CertFile, KeyFile: f.KeyFile,
	}
	if f.InsecureTransport {
		return s, nil // the files below are not read
	}
	if err := errors.Join(f.checkPaths()...); err != nil {
		return s, err
	}
	var err, err2 error
	s.Authorities, err = readCertificates("trusted-ca-file", f.TrustedCAFile)
	s.Chain, err2 = readCertificates("cert-file", f.CertFile)
	return s, errors.Join(err, err2)
}

// User returns, for people, the etcd user of a session and how it authenticates.
func (c *Config) User() string {
	name := c.UserName()
	switch {
	case name == "":
		return "nobody"
	case name == c.fields.Username:
		return name + " (password)"
	default:
		return name + " (certificate)"
	}
}

// UserName returns the etcd user of a session: the user name, or otherwise the common name of its
// certificate; empty for a session without a user.
func (c *Config) UserName() string {
	chain, _ := readCertificates("cert-file", pathOnly(c.fields.CertFile)) // an unreadable certificate counts as none
	if c.fields.Username == "" && len(chain) > 0 && slices.ContainsFunc(c.Endpoints, c.UsesTLS) {
		return chain[0].Subject.CommonName
	}
	return c.fields.Username
}

// ClientTLS returns the current TLS configuration of a session, with the authorities of
// trusted-ca-file. Certificate and key are read on each handshake. The error is about the
// authorities, or a path.
func (c *Config) ClientTLS() (*tls.Config, error) {
	f := &c.fields
	if err := errors.Join(f.checkPaths()...); err != nil {
		return nil, err
	}
	pool, err := f.pool()
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            pool,
		InsecureSkipVerify: f.InsecureSkipTLSVerify, //nolint:gosec // the file asks for it
	}
	if f.CertFile != "" && f.KeyFile != "" {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.certificate() }
	}
	return conf, nil
}

// CheckCertificate returns the current problems of the client certificate, its key, and the pair of
// them; nil when there are no problems, or no certificate and key.
func (c *Config) CheckCertificate() error {
	if problems := c.fields.checkPaths(); len(problems) > 0 {
		return errors.Join(problems...)
	}
	return errors.Join(c.fields.checkPair()...)
}

// CheckNext returns the error with which a new connection would fail, as far as the current files show: the client
// certificate cannot be read, is not valid yet, or belongs to another key, or the authorities do not verify the given
// chain of the server, which the current connection has accepted. It returns nil when a connection would not fail.
// Without a chain the authorities are not checked. The dates of the chain are never checked, because the server may
// have a newer certificate by now.
func (c *Config) CheckNext(server []*x509.Certificate, now time.Time) error {
	f := &c.fields
	if f.InsecureTransport {
		return nil
	}
	security, err := c.Security()
	if err = errors.Join(err, c.CheckCertificate()); err != nil {
		return err
	}
	if len(security.Chain) > 0 {
		if v := ValidityOf(security.Chain[0], now); v.NotYet {
			return problemf(codes.CertificateNotYetValid, "cert-file: %q: it %s: %s", f.CertFile, v.Text, v.Remedy)
		}
	}
	if len(server) == 0 || f.InsecureSkipTLSVerify {
		return nil
	}
	roots, err := f.pool()
	if err != nil {
		return err
	}
	between := x509.NewCertPool()
	for _, one := range server[1:] {
		between.AddCert(one)
	}
	for _, one := range server {
		if one.NotAfter.Before(now) {
			now = one.NotAfter
		}
	}
	_, err = server[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return problemf(codes.ServerCertificateUnfit, "the certificate of the server: %w", err)
	}
	return nil
}

// OnThisMachine reports whether an endpoint is local, so that it is not reached over a network.
func OnThisMachine(endpoint string) bool {
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

// UsesTLS reports whether a session with this endpoint is encrypted. It decides as etcd's
// client does: by the scheme, or without a scheme by insecure-transport.
func (c *Config) UsesTLS(endpoint string) bool {
	switch {
	case strings.HasPrefix(endpoint, "https://"), strings.HasPrefix(endpoint, "unixs:"):
		return true
	case strings.HasPrefix(endpoint, "http://"):
		return false
	default:
		return !c.fields.InsecureTransport
	}
}

// readCertificates reads every certificate of a file, as an [x509.CertPool] does: it ignores
// everything else. Without a path it returns none.
func readCertificates(key, path string) ([]*x509.Certificate, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	var certs []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return certs, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			certs = append(certs, cert)
		}
	}
}

// Validity is the result of a check of a certificate's dates at one moment.
type Validity struct {
	// Invalid: the certificate is not valid at that moment; NotYet: because its validity begins later.
	Invalid, NotYet bool
	// Soon: the certificate is valid, and expires within 30 days.
	Soon bool
	// Days are the whole days until it expires, negative when it has expired.
	Days int
	// Text is the rest of a sentence that begins with the name of the certificate.
	Text string
	// Remedy is advice, empty for a certificate that is valid for more than 30 days.
	Remedy string
}

// ValidityOf checks the dates of a certificate.
func ValidityOf(cert *x509.Certificate, now time.Time) Validity {
	left := cert.NotAfter.Sub(now)
	v := Validity{Days: int(left.Hours() / 24)}
	end := cert.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case left < 0:
		v.Invalid, v.Text, v.Remedy = true, "expired on "+end, "renew it"
	case now.Before(cert.NotBefore):
		v.Invalid, v.NotYet = true, true
		v.Text, v.Remedy = "is not valid before "+cert.NotBefore.UTC().Format(time.RFC3339), "wait, or set the clock"
	case left < expiry.Noticed:
		v.Soon, v.Text, v.Remedy = true, fmt.Sprintf("expires on %s, in %d days", end, v.Days), "renew it"
	default:
		v.Text = fmt.Sprintf("is valid until %s, for %d days", end, v.Days)
	}
	return v
}
