package sim

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/internal/pki"
)

// Common names of client certificates, and so etcd users (spec wire.md §0).
const (
	userRoot   = "root"
	userRemote = "remote"
)

// serverNames are what the server's certificate is good for; the first is what
// Cilium calls the server of a remote cluster.
func serverNames(cluster string) []string {
	return []string{cluster + ".mesh.cilium.io", "localhost", "127.0.0.1", "::1"}
}

// certificates issues those of the server, of a remote cluster, and of the
// simulator itself, which it returns.
func (r *Running) certificates() (*etcdserver.TLS, pki.Pair, error) {
	var admin pki.Pair
	var err error
	if r.o.CA == nil {
		if r.o.CA, err = pki.NewCA("mesh-sim CA"); err != nil {
			return nil, admin, err
		}
	}
	server, err := r.o.CA.Server(serverNames(r.c.Name))
	if err != nil {
		return nil, admin, err
	}
	if r.reader, err = r.o.CA.Client(userRemote); err != nil {
		return nil, admin, err
	}
	if admin, err = r.o.CA.Client(userRoot); err != nil {
		return nil, admin, err
	}
	t := &etcdserver.TLS{ClientAuth: true}
	if t.CertFile, t.KeyFile, err = server.Write(r.o.WorkDir, "server"); err != nil {
		return nil, admin, err
	}
	t.CAFile, err = r.o.CA.Write(r.o.WorkDir, "ca")
	return t, admin, err
}

// dial connects the simulator itself to its server.
func (r *Running) dial(ctx context.Context, admin pki.Pair) (*clientv3.Client, error) {
	cfg := clientv3.Config{
		Context:   context.WithoutCancel(ctx), // a client outlives the call; Close ends it
		Endpoints: []string{r.server.Endpoint()},
		Logger:    zap.NewNop(),
	}
	if !r.o.Plain {
		pair, err := admin.TLS()
		if err != nil {
			return nil, fmt.Errorf("read the simulator's certificate: %w", err)
		}
		cfg.TLS = &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
			RootCAs: r.o.CA.Pool(), ServerName: "localhost",
		}
	}
	cfg.DialKeepAliveTime = 30 * time.Second
	c, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", r.server.Endpoint(), err)
	}
	return c, nil
}

// enableAuth gives remote clusters the rights that they have in production.
func (r *Running) enableAuth(ctx context.Context) error {
	if r.o.Plain || r.o.NoAuth {
		return nil
	}
	remote := etcdserver.User{Name: userRemote, Role: etcdserver.RemoteReader(r.c.Name)}
	return etcdserver.EnableAuth(ctx, r.server.Local(), rand.Text(), remote)
}
