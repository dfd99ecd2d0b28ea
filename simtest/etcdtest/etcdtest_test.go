package etcdtest

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestMain(m *testing.M) { Main(m) }

func TestProcessKeepsDataOverKill(t *testing.T) {
	t.Parallel()
	p := StartProcess(t)
	id, endpoint := p.ClusterID(), p.Endpoint()
	p.Put(t, "k", "v")
	p.Kill(t)
	p.Restart(t)
	if p.ClusterID() != id || p.Endpoint() != endpoint {
		t.Errorf("restarted as %x at %s, was %x at %s", p.ClusterID(), p.Endpoint(), id, endpoint)
	}
	if n := count(t, p.Client(t)); n != 1 {
		t.Errorf("%d keys after the restart, want 1", n)
	}
}

func TestProcessRestartsEmpty(t *testing.T) {
	t.Parallel()
	p := StartProcess(t)
	id, endpoint := p.ClusterID(), p.Endpoint()
	p.Put(t, "k", "v")
	p.RestartEmpty(t)
	if p.ClusterID() != id {
		t.Errorf("same token, cluster ID %x was %x", p.ClusterID(), id)
	}
	if n := count(t, p.Client(t)); n != 0 {
		t.Errorf("%d keys in an empty server", n)
	}
	p.RestartAsOther(t)
	if p.ClusterID() == id || p.Endpoint() != endpoint {
		t.Errorf("another server is %x at %s, the first was %x at %s", p.ClusterID(), p.Endpoint(), id, endpoint)
	}
}

func TestProcessGoesBackToABackup(t *testing.T) {
	t.Parallel()
	p := StartProcess(t)
	id := p.ClusterID()
	p.Put(t, "a", "1")
	backup := p.Backup(t)
	p.Put(t, "b", "1")
	if n := count(t, p.Client(t)); n != 2 {
		t.Errorf("%d keys after the backup, want 2", n)
	}
	p.RestartFrom(t, backup)
	if n := count(t, p.Client(t)); n != 1 || p.ClusterID() != id {
		t.Errorf("%d keys of etcd %x from the backup, want 1 of %x", n, p.ClusterID(), id)
	}
}

func TestProcessFreezes(t *testing.T) {
	t.Parallel()
	p := StartProcess(t, WithTLS(NewCerts(t)))
	c := p.Client(t)
	p.Put(t, "k", "v")
	p.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server answers: %v", err)
	}
	p.Thaw(t)
	if n := count(t, c); n != 1 {
		t.Errorf("%d keys after the thaw, want 1", n)
	}
}

func TestServerWithTLS(t *testing.T) {
	t.Parallel()
	s := Start(t, WithTLS(NewCerts(t)))
	s.Put(t, "a", "1", "b", "2")
	s.Delete(t, "a")
	if rev := s.Compact(t); rev != 4 {
		t.Errorf("revision %d, want 4", rev)
	}
	if n := count(t, s.Client(t)); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

func count(t *testing.T, c *clientv3.Client) int64 {
	t.Helper()
	resp, err := c.Get(context.Background(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return resp.Count
}
