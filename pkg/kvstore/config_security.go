package kvstore

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
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
// now.
func (c *Config) Security() (Security, error) {
	f := &c.fields
	s := Security{
		Username: f.Username, SkipVerify: f.InsecureSkipTLSVerify,
		CAFile: f.TrustedCAFile, CertFile: f.CertFile, KeyFile: f.KeyFile,
	}
	if f.InsecureTransport {
		return s, nil // then these files are not looked at
	}
	var err error
	if s.Authorities, err = readCertificates("trusted-ca-file", f.TrustedCAFile); err != nil {
		return s, err
	}
	s.Chain, err = readCertificates("cert-file", f.CertFile)
	return s, err
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
