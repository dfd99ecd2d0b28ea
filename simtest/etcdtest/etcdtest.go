// Package etcdtest gives real etcd servers to tests, also to those of other modules: inside the
// test's process ([Start]) or in a process of their own ([StartProcess]), which can be killed,
// frozen and restarted. A package whose tests use the latter calls [Main] from TestMain:
//
//	func TestMain(m *testing.M) { etcdtest.Main(m) }
//
// Everything ends with the test that started it. testdata/other is how another module reads a
// cluster's nodes; a test builds and runs it.
//
// It links an etcd server, so only tests import it.
package etcdtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
)

// startTimeout is when a process that does not begin is killed, and a connection given up.
const startTimeout = time.Minute

// The configuration of a server, under names that other modules can use.
type (
	// Config is a server's configuration.
	Config = etcdserver.Config
	// User is an etcd user with a role of its own, for [Server.EnableAuth].
	User = etcdserver.User
	// Range is some keys that a role covers.
	Range = etcdserver.Range
)

// Option changes how a server is run.
type Option func(*settings)

type settings struct {
	cfg   etcdserver.Config
	certs *Certs
}

// WithTLS makes the server speak TLS with these certificates and demand client
// certificates of the same authority.
func WithTLS(c *Certs) Option {
	return func(s *settings) {
		s.certs = c
		s.cfg.TLS = &etcdserver.TLS{CertFile: c.ServerCert, KeyFile: c.ServerKey, CAFile: c.CAFile, ClientAuth: true}
	}
}

// WithConfig sets the whole configuration, for example that of a server to be continued.
func WithConfig(cfg Config) Option { return func(s *settings) { s.cfg = cfg } }

// WithTune changes other parts of etcd's configuration. It has no effect on a server in its
// own process.
func WithTune(f func(*embed.Config)) Option { return func(s *settings) { s.cfg.Tune = f } }

func newSettings(t testing.TB, opts []Option) settings {
	var s settings
	for _, o := range opts {
		o(&s)
	}
	if s.cfg.DataDir == "" {
		s.cfg.DataDir = dataDir(t)
	}
	if s.cfg.Tick == 0 {
		s.cfg.Tick = 10 * time.Millisecond
	}
	return s
}

// dataDir makes a directory for the data of a server, which is removed at the end of the test.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := etcdserver.TempDir()
	must(t, "make a data directory", err)
	t.Cleanup(func() { must(t, "remove a data directory", os.RemoveAll(dir)) })
	return dir
}

// Server is an etcd server inside the test's process.
type Server struct {
	*etcdserver.Server
	access
}

// Start runs a server until the end of the test.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := newSettings(t, opts)
	srv, err := etcdserver.Start(s.cfg)
	must(t, "start etcd", err)
	t.Cleanup(srv.Close)
	return &Server{srv, access{srv.Endpoint, s.certs}}
}

// Put writes keys and values, given alternately, and returns the last revision.
func (s *Server) Put(t testing.TB, kvs ...string) int64 {
	t.Helper()
	return put(t, s.Local(), kvs)
}

// Delete deletes keys and returns the last revision.
func (s *Server) Delete(t testing.TB, keys ...string) int64 {
	t.Helper()
	var rev int64
	for _, k := range keys {
		resp, err := s.Local().Delete(context.Background(), k)
		must(t, "delete "+k, err)
		rev = resp.Header.Revision
	}
	return rev
}

// Compact drops all history and returns the present revision.
func (s *Server) Compact(t testing.TB) int64 {
	t.Helper()
	rev, err := etcdserver.Compact(context.Background(), s.Local())
	must(t, "compact", err)
	return rev
}

// EnableAuth creates the users and switches authentication on. The password of root is "root".
func (s *Server) EnableAuth(t testing.TB, users ...User) {
	t.Helper()
	must(t, "enable authentication", etcdserver.EnableAuth(context.Background(), s.Local(), "root", users...))
}

// access has the address and the certificates with which clients reach a server.
type access struct {
	endpoint func() string
	certs    *Certs
}

// Client connects to the server, as root's certificate if it has TLS. The
// client is closed at the end of the test.
func (a access) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	return a.connect(t, "root", "", "")
}

// ClientAs connects as a user with a password.
func (a access) ClientAs(t testing.TB, user, password string) *clientv3.Client {
	t.Helper()
	return a.connect(t, "root", user, password)
}

// ClientWith connects with the certificate of a user, to a server with TLS.
func (a access) ClientWith(t testing.TB, user string) *clientv3.Client {
	t.Helper()
	return a.connect(t, user, "", "")
}

// ConfigFile writes a client configuration for the server into a new directory
// and returns its path. Extra lines of YAML are appended.
func (a access) ConfigFile(t testing.TB, extra ...string) string {
	t.Helper()
	return ConfigFile(t, a.endpoint(), a.certs, extra...)
}

// ConfigFileOf writes a client configuration with the certificate of a user, for a
// server with TLS, and returns its path.
func (a access) ConfigFileOf(t testing.TB, user string) string {
	t.Helper()
	return configFileOf(t, a.endpoint(), a.certs, user, nil)
}

// ConfigFile writes a client configuration and returns its path. With certificates, it uses those of the user "root".
func ConfigFile(t testing.TB, endpoint string, certs *Certs, extra ...string) string {
	t.Helper()
	return configFileOf(t, endpoint, certs, "root", extra)
}

// configFileOf writes a client configuration for a user, who is identified by the certificate, and returns its path.
func configFileOf(t testing.TB, endpoint string, certs *Certs, user string, extra []string) string {
	t.Helper()
	lines := []string{"endpoints:", "- " + endpoint}
	if certs != nil {
		cert, key := certs.Client(t, user)
		lines = append(lines, "trusted-ca-file: "+certs.CAFile, "cert-file: "+cert, "key-file: "+key)
	}
	path := filepath.Join(t.TempDir(), "cluster2")
	text := strings.Join(append(lines, extra...), "\n") + "\n"
	must(t, "write a client file", os.WriteFile(path, []byte(text), 0o600))
	return path
}

// connect connects with the certificate of commonName, if there are certificates.
func (a access) connect(t testing.TB, commonName, user, password string) *clientv3.Client {
	t.Helper()
	var tc *tls.Config
	if a.certs != nil {
		tc = a.certs.ClientTLS(t, commonName)
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{a.endpoint()}, TLS: tc, Username: user, Password: password,
		DialTimeout: startTimeout, Logger: zap.NewNop(),
	})
	must(t, "connect to "+a.endpoint(), err)
	t.Cleanup(func() { _ = c.Close() })
	return etcdserver.Patient(c)
}

func put(t testing.TB, c *clientv3.Client, kvs []string) int64 {
	t.Helper()
	if len(kvs)%2 != 0 {
		panic(fmt.Sprintf("Put needs keys and values, not %d strings", len(kvs)))
	}
	var rev int64
	for i := 0; i < len(kvs); i += 2 {
		resp, err := c.Put(context.Background(), kvs[i], kvs[i+1])
		must(t, "put "+kvs[i], err)
		rev = resp.Header.Revision
	}
	return rev
}

// must ends the test on an error, and reports the operation.
func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
