// Package etcdserver runs etcd servers of one member inside this process, for tests and for
// simulated clusters: on loopback, on a free port, without fsync, without logging.
// simtest/etcdtest wraps it for tests.
//
// A Server may be used by several goroutines. Its owner closes or kills it, once.
package etcdserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// startTimeout bounds the start of a server.
const startTimeout = time.Minute

// addrInUseTimeout is how long a port may still be in use, and a server behind a gate may be absent.
const addrInUseTimeout = 5 * time.Second

// peer is the address that every server advertises to its (absent) peers. As it is always the same, the etcd cluster ID
// depends on the token alone.
const peer = "127.0.0.1:2380"

// TLS makes a server speak TLS.
type TLS struct {
	// CertFile and KeyFile are the server's certificate, read again on each handshake.
	CertFile, KeyFile string
	// CAFile, when set, is the authority that verifies client certificates.
	CAFile string
	// ClientAuth requires a client certificate, whose common name is the etcd user.
	ClientAuth bool
}

// Config has the settings of a server. The zero value is valid: a new, empty server on a free port.
type Config struct {
	// DataDir has the database. Empty for a temporary directory, which Close removes. If it has a database, the server
	// continues with that and ignores Token.
	DataDir string
	// Addr is the address to listen on, "127.0.0.1:0" when empty. To take over
	// from a server, use its Addr.
	Addr string
	// Token is the cluster token. Servers with the same token have the same etcd cluster ID, including one that was
	// emptied. Empty for a random one.
	Token string
	// TLS is nil for plain text.
	TLS *TLS
	// QuotaBytes limits the database, 8 GiB when 0.
	QuotaBytes int64
	// MaxRequestBytes limits one request and one fragment of a watch response, 1.5 MiB when 0.
	MaxRequestBytes uint
	// Tick is raft's clock, 100 ms when 0. A shorter one starts faster, and costs a little CPU.
	Tick time.Duration
	// Tune, when set, may change any other setting before the server starts.
	Tune func(*embed.Config) `json:"-"`
}

// Server is a running server.
type Server struct {
	cfg     Config // with all defaults set
	tempDir bool
	etcd    *embed.Etcd
	grpc    atomic.Pointer[grpc.Server]
	local   *clientv3.Client
	stop    sync.Once
}

// Start runs a server and waits until it serves.
func Start(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg}
	s.cfg.Addr, s.cfg.Token = cmp.Or(cfg.Addr, "127.0.0.1:0"), cmp.Or(cfg.Token, rand.Text())
	if cfg.DataDir == "" {
		dir, err := TempDir()
		if err != nil {
			return nil, fmt.Errorf("make a data directory: %w", err)
		}
		s.cfg.DataDir, s.tempDir = dir, true
	}
	if err := s.start(); err != nil {
		s.removeTemp()
		return nil, fmt.Errorf("start an etcd server on %s with data in %s: %w", s.cfg.Addr, s.cfg.DataDir, err)
	}
	s.cfg.Addr = s.etcd.Clients[0].Addr().String()
	s.local = Patient(v3client.New(s.etcd.Server))
	return s, nil
}

func (s *Server) start() error {
	shorten()
	err := whileInUse(func() (err error) {
		s.etcd, err = embed.StartEtcd(s.embedConfig())
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err = <-s.etcd.Err():
	case <-time.After(startTimeout):
		err = fmt.Errorf("it is not ready after %s", startTimeout)
	}
	s.etcd.Close()
	return err
}

func (s *Server) embedConfig() *embed.Config {
	ec := embed.NewConfig()
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	ec.Name = "member"
	ec.Dir = s.cfg.DataDir
	ec.UnsafeNoFsync = true
	ec.EnableGRPCGateway = false
	ec.BcryptCost = 4
	ec.QuotaBackendBytes = cmp.Or(s.cfg.QuotaBytes, 8<<30)
	ec.MaxRequestBytes = cmp.Or(s.cfg.MaxRequestBytes, ec.MaxRequestBytes)
	if t := uint(s.cfg.Tick.Milliseconds()); t > 0 { //nolint:gosec // a few milliseconds
		ec.TickMs, ec.ElectionMs = t, 10*t
	}
	ec.InitialClusterToken = s.cfg.Token
	ec.InitialCluster = ec.Name + "=http://" + peer
	ec.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: peer}}
	ec.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	client := url.URL{Scheme: s.scheme(), Host: s.cfg.Addr}
	ec.ListenClientUrls = []url.URL{client}
	ec.AdvertiseClientUrls = []url.URL{client}
	if t := s.cfg.TLS; t != nil {
		ec.ClientTLSInfo = transport.TLSInfo{
			CertFile: t.CertFile, KeyFile: t.KeyFile,
			TrustedCAFile: t.CAFile, ClientCertAuth: t.ClientAuth,
		}
	}
	ec.ServiceRegister = func(g *grpc.Server) { s.grpc.Store(g) }
	if s.cfg.Tune != nil {
		s.cfg.Tune(ec)
	}
	return ec
}

func (s *Server) scheme() string {
	if s.cfg.TLS != nil {
		return "https"
	}
	return "http"
}

// Endpoint returns the URL for clients, with an IP address.
func (s *Server) Endpoint() string { return s.scheme() + "://" + s.cfg.Addr }

// Addr returns the address, "127.0.0.1:12345".
func (s *Server) Addr() string { return s.cfg.Addr }

// ClusterID returns the etcd cluster ID.
func (s *Server) ClusterID() uint64 { return uint64(s.etcd.Server.Cluster().ID()) }

// Config returns the configuration with all defaults set: a start with it after Close or Kill continues the same
// database at the same address, except in a temporary directory.
func (s *Server) Config() Config { return s.cfg }

// Local returns a client ([Patient]) that uses the server without a connection, which works until authentication is enabled. It
// ends with the server.
func (s *Server) Local() *clientv3.Client { return s.local }

// Err returns a channel that gets an error when the server fails by itself.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Close stops the server: open streams are cut, the database is closed. It removes a temporary data directory.
func (s *Server) Close() {
	s.stop.Do(func() {
		s.cut()
		s.etcd.Close()
	})
	s.removeTemp()
}

func (s *Server) removeTemp() {
	if s.tempDir {
		_ = os.RemoveAll(s.cfg.DataDir)
	}
}

// Kill stops the server at once: pending work of raft is dropped. The data directory always stays. The port is free
// afterwards. For a kill of a whole process see simtest/etcdtest.
func (s *Server) Kill() {
	s.stop.Do(func() {
		s.cut()
		s.etcd.Server.HardStop()
		s.etcd.Close()
	})
}

// cut ends the open streams, for which the server would otherwise wait.
func (s *Server) cut() {
	_ = s.local.Close()
	if g := s.grpc.Load(); g != nil {
		g.Stop()
	}
}

// Compact drops the history below and at the present revision, so that watches
// and lists at earlier revisions fail. It returns the revision.
func Compact(ctx context.Context, c *clientv3.Client) (int64, error) {
	resp, err := c.Get(ctx, "compact", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	rev := resp.Header.Revision
	_, err = c.Compact(ctx, rev, clientv3.WithCompactPhysical())
	return rev, err
}
