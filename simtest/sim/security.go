package sim

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// userRoot is the simulator's own etcd user: the common name of its certificate.
const userRoot = "root"

// user is the agent's user in this etcd, named by the common name of its certificate, with its rights (spec wire.md
// §0).
func (e *etcd) user() etcdserver.User {
	c := e.clusters[0].c
	switch c.Mode {
	case contents.Cached:
		return etcdserver.User{Name: "local", Role: etcdserver.LocalReader()}
	case contents.Local:
		all := etcdserver.Prefix("cilium/")
		all.Write = true
		return etcdserver.User{Name: "admin-" + c.Name, Role: []etcdserver.Range{all}}
	default:
		return etcdserver.User{Name: "remote", Role: etcdserver.RemoteReader(c.Name)}
	}
}

// certificates issues the certificates of the server, of the agent, and of the simulator itself.
func (e *etcd) certificates() error {
	// The first name is Cilium's name for the server of a remote cluster.
	server, err := e.ca.Server([]string{e.name + ".mesh.cilium.io", "localhost", "127.0.0.1", "::1"})
	if err != nil {
		return err
	}
	if e.reader, err = e.ca.Client(e.user().Name); err != nil {
		return err
	}
	if e.admin, err = e.ca.Client(userRoot); err != nil {
		return err
	}
	t := &etcdserver.TLS{ClientAuth: true}
	if t.CertFile, t.KeyFile, err = server.Write(e.work, "server"); err != nil {
		return err
	}
	t.CAFile, err = e.ca.Write(e.work, "ca")
	e.tls = t
	return err
}

// dialAs connects to a server as a user.
func (e *etcd) dialAs(ctx context.Context, endpoint string, as pki.Pair) (*clientv3.Client, error) {
	cfg := clientv3.Config{
		Context:   context.WithoutCancel(ctx), // the client lives longer than the call
		Endpoints: []string{endpoint},
		Logger:    zap.NewNop(), DialKeepAliveTime: 30 * time.Second,
	}
	if !e.o.Plain {
		pair, err := as.TLS()
		if err != nil {
			return nil, fmt.Errorf("read a client certificate: %w", err)
		}
		cfg.TLS = &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
			RootCAs: e.ca.Pool(), ServerName: "localhost",
		}
	}
	c, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", endpoint, err)
	}
	return c, nil
}

// enableAuth gives the agent the rights that it has in production.
func (e *etcd) enableAuth(ctx context.Context, s *etcdserver.Server) error {
	if e.o.Plain || e.o.NoAuth {
		return nil
	}
	return etcdserver.EnableAuth(ctx, s.Local(), rand.Text(), e.user())
}

// certify issues another certificate for the agent.
func (r *Running) certify(valid time.Duration) error {
	e := r.etcd
	if e.o.Plain {
		return refuse("%s is served without TLS", r.c.Name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	pair, err := e.ca.Client(e.user().Name, pki.Valid(now.Add(-time.Hour), now.Add(valid)))
	if err != nil {
		return err
	}
	e.reader = pair
	return nil
}
