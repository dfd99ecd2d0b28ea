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
)

// What a configuration may risk.
const (
	// PlainRisk is that of an endpoint without TLS on another machine.
	PlainRisk = "everybody on the way can read and change what it says"
	// SkipVerifyRisk is that of insecure-skip-tls-verify.
	SkipVerifyRisk = "whoever answers at the endpoint is believed"
)

// Security is how a configuration protects its sessions, for people who check
// it. It has no secret.
type Security struct {
	// Username is that of password authentication, empty for none.
	Username string
	// SkipVerify: the server's certificate is not verified.
	SkipVerify bool
	// CAFile, CertFile and KeyFile are paths, empty when there is none.
	CAFile, CertFile, KeyFile string
	// Authorities are those of CAFile, Chain the client's certificate and
	// what follows it in CertFile. Both are empty without a file, and in a
	// configuration that does not use TLS whatever it says.
	Authorities, Chain []*x509.Certificate
}

// Security reads the certificates that the configuration names, as they are
// now. What can be read is there beside an error about the rest.
func (c *Config) Security() (Security, error) {
	f := &c.fields
	s := Security{
		Username: f.Username, SkipVerify: f.InsecureSkipTLSVerify,
		CAFile: f.TrustedCAFile, CertFile: f.CertFile, KeyFile: f.KeyFile,
	}
	if f.InsecureTransport {
		return s, nil // then these files are not looked at
	}
	err := errors.Join(f.checkPaths()...)
	if err != nil {
		return s, err
	}
	authorities, err := readCertificates("trusted-ca-file", f.TrustedCAFile)
	chain, err2 := readCertificates("cert-file", f.CertFile)
	s.Authorities, s.Chain = authorities, chain
	return s, errors.Join(err, err2)
}

// User says who a session would be to etcd, for people.
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

// UserName is who a session would be to etcd, by its user name or else the common
// name of its certificate; empty when it would be nobody.
func (c *Config) UserName() string {
	chain, _ := readCertificates("cert-file", pathOnly(c.fields.CertFile)) // who cannot be read is nobody
	if c.fields.Username == "" && len(chain) > 0 && slices.ContainsFunc(c.Endpoints, c.UsesTLS) {
		return chain[0].Subject.CommonName
	}
	return c.fields.Username
}

// ClientTLS returns the TLS configuration of a session at this moment, with the
// authorities of trusted-ca-file. Certificate and key are read on each handshake.
// The error tells what is wrong with the authorities.
func (c *Config) ClientTLS() (*tls.Config, error) {
	if problems := c.fields.checkPaths(); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return c.fields.tlsConfig()
}

// CheckCertificate tells what is wrong with the client certificate, its key, and
// the two together, as they are now; nil when nothing is, or there are none.
func (c *Config) CheckCertificate() error {
	if problems := c.fields.checkPaths(); len(problems) > 0 {
		return errors.Join(problems...)
	}
	return errors.Join(c.fields.checkPair()...)
}

// OnThisMachine tells whether an endpoint cannot be reached over a network.
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

// UsesTLS tells whether a session with this endpoint of the configuration is
// encrypted.
func (c *Config) UsesTLS(endpoint string) bool { return c.fields.wantsTLS(endpoint) }

// readCertificates reads every certificate of a file, as a pool does: what is
// none is passed over. No path is no certificates.
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

// tlsConfig makes the TLS configuration for one session. The authorities are
// those of now; certificate and key are read again on each handshake.
func (f *fields) tlsConfig() (*tls.Config, error) {
	pool, err := f.pool()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            pool,
		InsecureSkipVerify: f.InsecureSkipTLSVerify, //nolint:gosec // the file asks for it
	}
	if f.CertFile != "" && f.KeyFile != "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return f.certificate()
		}
	}
	return c, nil
}

// wantsTLS decides as etcd's client does: by the scheme, and without one by
// insecure-transport.
func (f *fields) wantsTLS(endpoint string) bool {
	switch {
	case strings.HasPrefix(endpoint, "https://"), strings.HasPrefix(endpoint, "unixs:"):
		return true
	case strings.HasPrefix(endpoint, "http://"):
		return false
	default:
		return !f.InsecureTransport
	}
}
