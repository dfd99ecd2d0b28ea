package kvstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// tlsConfig makes the TLS configuration for one session. The authorities are
// those of now; certificate and key are read again on each handshake.
func (f *fields) tlsConfig() (*tls.Config, error) {
	pool, err := f.pool()
	if err != nil {
		return nil, fmt.Errorf("trusted-ca-file: %q: %w", f.TrustedCAFile, err)
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

// transport makes the credentials for an endpoint, which tell the dialer what
// goes wrong after the connection was made.
func (f *fields) transport(endpoint string, d *dialer) (credentials.TransportCredentials, error) {
	if !f.wantsTLS(endpoint) {
		return &watchedCredentials{insecure.NewCredentials(), d, "opening a plain text connection to"}, nil
	}
	c, err := f.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &watchedCredentials{credentials.NewTLS(c), d, "opening a TLS connection to"}, nil
}

// watchedCredentials report failures of handshakes and of what comes right
// after: a TLS 1.3 server refuses a client certificate only then.
type watchedCredentials struct {
	credentials.TransportCredentials
	dialer *dialer
	what   string
}

// ClientHandshake implements [credentials.TransportCredentials].
func (w *watchedCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w.dialer.begin(w.what + " " + authority)
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("no answer: %w", cause)
		}
		err = fmt.Errorf("%s %s (%s): %w", w.what, authority, raw.RemoteAddr(), err)
		w.dialer.failed(err)
		return nil, nil, err
	}
	return &watchedConn{Conn: conn, w: w}, info, nil
}

// Clone implements [credentials.TransportCredentials].
func (w *watchedCredentials) Clone() credentials.TransportCredentials {
	return &watchedCredentials{w.TransportCredentials.Clone(), w.dialer, w.what}
}

// watchedConn reports an error of the first read, and that it succeeded.
type watchedConn struct {
	net.Conn
	w    *watchedCredentials
	read atomic.Bool
}

// Read implements [net.Conn].
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.read.Load() || !c.read.CompareAndSwap(false, true) {
		return n, err
	}
	switch {
	case n > 0:
		c.w.dialer.worked()
	case errors.Is(err, net.ErrClosed): // by ourselves
		c.w.dialer.failed(fmt.Errorf("%s %s: nothing came back", c.w.what, c.RemoteAddr()))
	case err != nil:
		c.w.dialer.failed(fmt.Errorf("%s %s: closed by the server: %w", c.w.what, c.RemoteAddr(), err))
	}
	return n, err
}
