package etcdserver

import (
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(cfg)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestRestartContinues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		stop func(*Server)
	}{{"closed", (*Server).Close}, {"killed", (*Server).Kill}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := waittest.Context(t)
			s := start(t, Config{DataDir: t.TempDir()})
			if _, err := s.Local().Put(ctx, "k", "v"); err != nil {
				t.Fatal(err)
			}
			id := s.ClusterID()
			c.stop(s)
			s2 := start(t, s.Config())
			if s2.ClusterID() != id || s2.Endpoint() != s.Endpoint() {
				t.Errorf("another server: %x at %s, was %x at %s", s2.ClusterID(), s2.Endpoint(), id, s.Endpoint())
			}
			resp, err := s2.Local().Get(ctx, "k")
			if err != nil || resp.Count != 1 {
				t.Errorf("the key is lost: %v %v", resp, err)
			}
		})
	}
}

func TestTokenDecidesClusterID(t *testing.T) {
	t.Parallel()
	a, b, c := start(t, Config{Token: "x"}), start(t, Config{Token: "x"}), start(t, Config{})
	if a.ClusterID() != b.ClusterID() {
		t.Errorf("same token, IDs %x and %x", a.ClusterID(), b.ClusterID())
	}
	if a.ClusterID() == c.ClusterID() {
		t.Errorf("another token, same ID %x", a.ClusterID())
	}
}

func TestTemporaryDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	dir := s.Config().DataDir
	s.Close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestStreamsAreCutOnClose(t *testing.T) {
	t.Parallel()
	ctx := waittest.Context(t)
	s := start(t, Config{})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, Logger: zap.NewNop()})
	must(t, err)
	defer func() { _ = c.Close() }()
	w := c.Watch(ctx, "k", clientv3.WithCreatedNotify())
	<-w
	s.Close()
}

func TestAuth(t *testing.T) {
	t.Parallel()
	ctx := waittest.Context(t)
	s := start(t, Config{})
	if err := EnableAuth(ctx, s.Local(), ""); err == nil {
		t.Error("enabled without a root password")
	}
	user := User{Name: "remote", Password: "pw", Role: RemoteReader("c2")}
	must(t, EnableAuth(ctx, s.Local(), "rootpw", user))
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.Endpoint()}, Logger: zap.NewNop(), Username: "remote", Password: "pw",
	})
	must(t, err)
	defer func() { _ = c.Close() }()
	if _, err := c.Get(ctx, "cilium/state/nodes/", clientv3.WithPrefix()); err != nil {
		t.Errorf("may not read: %v", err)
	}
	if _, err := c.Put(ctx, "cilium/state/nodes/x", ""); err == nil {
		t.Error("may write")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
