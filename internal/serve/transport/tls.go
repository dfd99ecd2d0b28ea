package transport

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// TLSFiles are the files of a TLS server, in PEM form. They are read at each handshake.
type TLSFiles struct {
	Cert, Key string
	// ClientCA has the authorities of the clients, which then need a certificate. Empty: no client certificate is
	// requested.
	ClientCA string
}

// TLS is the last usable content of the files. Several listeners may share it. It is safe for concurrent use.
type TLS struct {
	files TLSFiles
	log   *slog.Logger

	mu     sync.Mutex
	texts  [3]string   // the texts from which config was made
	failed string      // why the last read of the files failed
	since  time.Time   // since when the files cannot be used
	config *tls.Config // for a connection, without its protocols; never changed after it is set
	// The certificates of config: the server's with its issuers, and the authorities of clients.
	chain, authorities []*x509.Certificate
}

// NewTLS returns a TLS that reads the files when it listens.
func NewTLS(files TLSFiles, log *slog.Logger) *TLS { return &TLS{files: files, log: log} }

// listenConfig returns the configuration of a listener that offers these protocols.
func (t *TLS) listenConfig(protocols []string) (*tls.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		_ = t.read() // the error is logged, and the previous files stay in use
		config := t.config.Clone()
		config.NextProtos = protocols
		return config, nil
	}}, nil
}

// read loads the files. Unusable files change nothing: while the files are replaced, a certificate and a key may not
// belong together. mu is held.
func (t *TLS) read() error {
	err := t.load()
	switch {
	case err == nil:
		t.failed, t.since = "", time.Time{}
	case t.failed != err.Error():
		if t.since.IsZero() {
			t.since = time.Now()
		}
		t.failed = err.Error()
		t.log.Warn("Cannot read the certificate of the API again; the previous one stays in use", "error", err)
	}
	return err
}

// load reads the files, and creates a new configuration when they have changed; mu is held.
func (t *TLS) load() error {
	var texts [3]string
	for i, path := range []string{t.files.Cert, t.files.Key, t.files.ClientCA} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		switch {
		case err != nil && i < 2:
			return t.unusable(err)
		case err != nil:
			return fmt.Errorf("the authorities of clients: %w", err)
		}
		texts[i] = string(text)
	}
	if t.config != nil && texts == t.texts {
		return nil
	}
	pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
	if err != nil {
		return t.unusable(err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		// A resumed session would not be checked against new authorities.
		SessionTicketsDisabled: true,
	}
	if t.files.ClientCA != "" {
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM([]byte(texts[2])) {
			return fmt.Errorf("the authorities of clients: there is no certificate in %s", t.files.ClientCA)
		}
	}
	t.texts, t.config, t.chain, t.authorities = texts, config, certificatesIn([]byte(texts[0])), certificatesIn([]byte(texts[2]))
	return nil
}

// certificatesIn returns the certificates of a text in PEM form; other blocks are ignored.
func certificatesIn(text []byte) (all []*x509.Certificate) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, cert)
		}
	}
}

func (t *TLS) unusable(err error) error {
	return fmt.Errorf("the certificate %s with the key %s: %w", t.files.Cert, t.files.Key, err)
}

// Serves reports whether a request for this host, which may have a port, is meant for this server. more has names in
// addition to those of the certificate: one that begins with a dot is for all names that end with it. An address is
// accepted, because DNS rebinding needs a name. An empty host is also accepted, because every browser sends a host. A
// nil TLS has no certificate.
func (t *TLS) Serves(host string, more []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || strings.EqualFold(name, "localhost") {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	for _, one := range more {
		from := 0
		if one[0] == '.' {
			from = max(1, len(name)-len(one))
		}
		if from < len(name) && strings.EqualFold(name[from:], one) {
			return true
		}
	}
	return t != nil && t.names(name)
}

// names reports whether the certificate has this name.
func (t *TLS) names(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.config == nil {
		return false
	}
	return t.chain[0].VerifyHostname(name) == nil
}
