package etcdtest

import (
	"crypto/tls"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

// Certs is an authority and a server certificate, in files of one directory.
type Certs struct {
	CA                            *pki.CA
	Dir                           string
	CAFile, ServerCert, ServerKey string
}

// NewCerts makes an authority and a server certificate for the hosts,
// 127.0.0.1 and localhost when none is given.
func NewCerts(t testing.TB, hosts ...string) *Certs {
	t.Helper()
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1", "localhost"}
	}
	ca, err := pki.NewCA("mesh test CA")
	must(t, "make an authority", err)
	c := &Certs{CA: ca, Dir: t.TempDir()}
	c.CAFile, err = ca.Write(c.Dir, "ca")
	must(t, "write the authority", err)
	c.SetServer(t, hosts)
	return c
}

// SetServer replaces the server's certificate. A running server uses it from the next handshake on.
func (c *Certs) SetServer(t testing.TB, hosts []string, opts ...pki.Option) {
	t.Helper()
	pair, err := c.CA.Server(hosts, opts...)
	must(t, "issue a certificate for the server", err)
	c.ServerCert, c.ServerKey, err = pair.Write(c.Dir, "server")
	must(t, "write the server's certificate", err)
}

// Client issues a client certificate for a user, replacing an earlier one of
// the same name, and returns its files.
func (c *Certs) Client(t testing.TB, user string, opts ...pki.Option) (certFile, keyFile string) {
	t.Helper()
	pair, err := c.CA.Client(user, opts...)
	must(t, "issue a client certificate", err)
	certFile, keyFile, err = pair.Write(c.Dir, "client-"+user)
	must(t, "write a client certificate", err)
	return certFile, keyFile
}

// ClientTLS returns a client's configuration with a new certificate for a user.
func (c *Certs) ClientTLS(t testing.TB, user string) *tls.Config {
	t.Helper()
	pair, err := c.CA.Client(user)
	must(t, "issue a client certificate", err)
	cert, err := pair.TLS()
	must(t, "read a client certificate", err)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.CA.Pool(), Certificates: []tls.Certificate{cert}}
}
