package members

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestOperateGivesEtcdItsUsers: from then on, a remote reader can only read the published keys, and an unknown client
// is refused; the processes of the cluster continue.
func TestOperateGivesEtcdItsUsers(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	srv := etcdtest.Start(t, etcdtest.WithTLS(certs))
	dir := t.TempDir()
	file := func(user string) string {
		cert, key := certs.Client(t, user)
		path := filepath.Join(dir, user+".yaml")
		text := fmt.Sprintf("endpoints: [%s]\ntrusted-ca-file: %s\ncert-file: %s\nkey-file: %s\n", srv.Endpoint(), certs.CAFile, cert, key)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	users := filepath.Join(dir, "users.yaml")
	must(t, os.WriteFile(users, []byte("users: [{name: remote-west, role: remote}]\n"), 0o600))
	cmd := exec.Command(buildtest.Agent(t), "operate", "--cluster-name", "east", "--cluster-id", "3",
		"--kvstore-opt", "etcd.config="+file("admin-east"), "--kvstore-ensure-users", "--kvstore-users-file", users,
		"--listen", "127.0.0.1:0", "--socket", filepath.Join(dir, "s"))
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait reports
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	ctx := waittest.Context(t)
	as := func(user string) (*etcd.Session, error) {
		cfg, err := clientfile.Load(file(user))
		if err != nil {
			return nil, err
		}
		o := etcd.DefaultOptions()
		o.QPS = 0
		return etcd.Connect(ctx, cfg, 0, o)
	}
	for _, user := range []string{"remote", "remote-west", "local-east", "node"} {
		waittest.Try(t, user+" to have his rights", func() error {
			e, err := as(user)
			if err != nil {
				return err
			}
			defer e.Close()
			kv, _, err := e.Get(ctx, wire.ClusterConfigKey("east"))
			switch {
			case err != nil:
				return err
			case kv == nil || !strings.HasPrefix(string(kv.Value), `{"id":3`):
				return fmt.Errorf("the configuration is %v", kv)
			}
			if _, err := e.Put(ctx, wire.ClusterConfigKey("east"), nil); !errors.Is(err, kvstore.ErrPermissionDenied) {
				return fmt.Errorf("he writes: %w", err)
			}
			if _, _, err := e.Get(ctx, "other"); !errors.Is(err, kvstore.ErrPermissionDenied) {
				return fmt.Errorf("he reads what is not his: %w", err)
			}
			return nil
		})
	}
	if e, err := as("unknown"); err == nil {
		e.Close()
		t.Error("an unknown client is let in")
	}
	if _, err := srv.Client(t).Delete(ctx, wire.ClusterConfigKey("east")); err != nil {
		t.Fatal(err)
	}
	waittest.Try(t, "the configuration to come back", func() error {
		resp, err := srv.Client(t).Get(ctx, wire.ClusterConfigKey("east"))
		if err == nil && len(resp.Kvs) == 0 {
			err = errors.New("it is not there")
		}
		return err
	})
}
