package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TLSFiles are the files of a client for a server with TLS, in PEM form. They are read by [New]. The zero value trusts
// the authorities of the system and has no certificate.
type TLSFiles struct {
	CA        string // authorities of the server; empty: those of the system
	Cert, Key string // of the client; both or none
}

// config returns the TLS configuration for a server at base; nil for plain HTTP.
func (f TLSFiles) config(base string) (*tls.Config, error) {
	if !strings.HasPrefix(base, "https://") {
		if f != (TLSFiles{}) {
			return nil, fmt.Errorf("server %q: certificates are for https://, and this is plain", base)
		}
		return nil, nil
	}
	return f.Config()
}

// Config returns the TLS configuration for a client. The files are read now.
func (f TLSFiles) Config() (*tls.Config, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a client certificate and its key are given together")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("the authorities of the server: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the authorities of the server: there is no certificate in %s", f.CA)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate %s with the key %s: %w", f.Cert, f.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
