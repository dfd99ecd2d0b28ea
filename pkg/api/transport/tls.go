package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// TLSFiles are the files of a server that speaks TLS, in PEM form. They are read
// again at the first handshake after one of them has changed.
type TLSFiles struct {
	Cert, Key string
	// ClientCA are the authorities of the clients, which then need a certificate.
	// Empty: clients are not asked for one.
	ClientCA string
}

// TLS is what the files held when all of them could be used last. It is safe
// for concurrent use.
type TLS struct {
	files TLSFiles
	log   *slog.Logger

	mu     sync.Mutex
	seen   [3]fs.FileInfo // of the files, as they were looked at last; nil: could not be
	failed string         // why they could not be used when they were read last
	pair   tls.Certificate
	config *tls.Config // for a connection; not changed once it is there
}

// NewTLS returns what reads the files when it listens.
func NewTLS(files TLSFiles, log *slog.Logger) *TLS { return &TLS{files: files, log: log} }

// listenConfig reads the files and returns what a listener needs.
func (t *TLS) listenConfig() (*tls.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed()
	if err := t.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return t.current(), nil
	}}, nil
}

// current is the configuration of now. Files that cannot be used change nothing:
// while they are replaced, a certificate and a key may not belong together.
func (t *TLS) current() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.changed() {
		return t.config
	}
	failed := ""
	if err := t.load(); err != nil {
		t.seen = [3]fs.FileInfo{} // read again at the next handshake
		if failed = err.Error(); failed != t.failed {
			t.log.Warn("The certificate of the API cannot be read again: the one from before stays in use", "error", err)
		}
	}
	t.failed = failed
	return t.config
}

// changed tells whether a file is another one than when it was looked at last; mu
// is held.
func (t *TLS) changed() bool {
	changed := false
	for i, path := range []string{t.files.Cert, t.files.Key, t.files.ClientCA} {
		if path == "" {
			continue
		}
		now, err := os.Stat(path)
		if err != nil {
			now = nil
		}
		if before := t.seen[i]; now == nil || before == nil || !os.SameFile(now, before) || !now.ModTime().Equal(before.ModTime()) || now.Size() != before.Size() {
			changed = changed || now != nil || before != nil
		}
		t.seen[i] = now
	}
	return changed
}

// load reads the files; mu is held.
func (t *TLS) load() error {
	pair, err := tls.LoadX509KeyPair(t.files.Cert, t.files.Key)
	if err != nil {
		return fmt.Errorf("the certificate %s with the key %s: %w", t.files.Cert, t.files.Key, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"},
		// A session that is resumed would not be checked against other authorities.
		SessionTicketsDisabled: true,
	}
	if t.files.ClientCA != "" {
		text, err := os.ReadFile(t.files.ClientCA)
		if err != nil {
			return fmt.Errorf("the authorities of clients: %w", err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("the authorities of clients: there is no certificate in %s", t.files.ClientCA)
		}
	}
	t.pair, t.config = pair, config
	return nil
}

// Names tells whether the certificate has this name.
func (t *TLS) Names(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pair.Leaf != nil && t.pair.Leaf.VerifyHostname(name) == nil
}
