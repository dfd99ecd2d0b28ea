package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// transport makes the credentials for an endpoint. They report errors after the connection was
// made to the dialer.
func transport(cfg *clientfile.Config, endpoint string, d *dialer) (credentials.TransportCredentials, error) {
	if !cfg.UsesTLS(endpoint) {
		return &watchedCredentials{insecure.NewCredentials(), d, hint.OpeningPlain}, nil
	}
	c, err := cfg.ClientTLS()
	if err != nil {
		return nil, err
	}
	return &watchedCredentials{credentials.NewTLS(c), d, hint.OpeningTLS}, nil
}

// HandshakeError returns the error of a handshake with an endpoint, with the text that [Connect] uses
// and [hint.Text] recognises. Pass [hint.OpeningTLS] or [hint.OpeningPlain] as what.
func HandshakeError(ctx context.Context, what, authority string, raw net.Conn, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf(hint.NoAnswer+"%w", cause)
	}
	return fmt.Errorf("%s %s (%s): %w", what, authority, raw.RemoteAddr(), err)
}

// RefusedError returns the error of the first read after a handshake, in the same way: a TLS 1.3 server
// refuses a client certificate only then.
func RefusedError(what string, by net.Addr, err error) error {
	return fmt.Errorf("%s %s: closed by the server: %w", what, by, err)
}

// watchedCredentials report failures of handshakes and of the first read after them.
type watchedCredentials struct {
	credentials.TransportCredentials
	dialer *dialer
	what   string
}

// ClientHandshake implements [credentials.TransportCredentials].
func (w *watchedCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w.dialer.begin(w.what + " " + authority)
	ctx, cancel := w.dialer.bounded(ctx)
	defer cancel()
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		err = HandshakeError(ctx, w.what, authority, raw, err)
		w.dialer.failedUnlessCancelled(ctx, err)
		return nil, nil, err
	}
	if secured, is := info.(credentials.TLSInfo); is {
		w.dialer.accepted.Store(&kvstore.Certificates{Chain: chainOf(&secured.State), At: time.Now()})
	}
	if deadline, ok := ctx.Deadline(); ok { // also for the first bytes from the server
		_ = conn.SetReadDeadline(deadline)
	}
	return &watchedConn{Conn: conn, w: w, first: make(chan struct{})}, info, nil
}

// chainOf returns the chain with which a server was accepted: of several chains the one that is valid longest.
func chainOf(state *tls.ConnectionState) (best []*x509.Certificate) {
	if len(state.VerifiedChains) == 0 {
		return state.PeerCertificates[:min(1, len(state.PeerCertificates))]
	}
	until := func(chain []*x509.Certificate) time.Time { return kvstore.Certificates{Chain: chain}.Authority() }
	for _, chain := range state.VerifiedChains {
		if best == nil || until(chain).After(until(best)) {
			best = chain
		}
	}
	return best
}

// Clone implements [credentials.TransportCredentials].
func (w *watchedCredentials) Clone() credentials.TransportCredentials {
	return &watchedCredentials{w.TransportCredentials.Clone(), w.dialer, w.what}
}

// lastWords is how long Close waits, before the first read of a connection, for the server's reason.
const lastWords = 200 * time.Millisecond

// watchedConn reports the result of the first read to the dialer: an error or success.
type watchedConn struct {
	net.Conn
	w     *watchedCredentials
	once  sync.Once
	first chan struct{} // closed once the first read has ended
}

// Read implements [net.Conn].
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.w.dialer.received.Add(int64(n))
	c.once.Do(func() {
		_ = c.SetReadDeadline(time.Time{})
		c.report(n, err)
		close(c.first)
	})
	return n, err
}

func (c *watchedConn) report(n int, err error) {
	switch {
	case n > 0:
		c.w.dialer.worked()
	case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded): // caused by ourselves
		c.w.dialer.failed(fmt.Errorf("%s %s: %s", c.w.what, c.RemoteAddr(), hint.NothingBack))
	case err != nil:
		c.w.dialer.failed(RefusedError(c.w.what, c.RemoteAddr(), err))
	}
}

// Close implements [net.Conn]. It waits for the first read, because gRPC closes a connection
// as soon as a write fails, when the reason has not been read yet.
func (c *watchedConn) Close() error {
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-c.first:
	case <-t.C:
	}
	return c.Conn.Close()
}
