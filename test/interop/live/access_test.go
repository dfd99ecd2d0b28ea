package live

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// TestUsersOfAMeshMaySeeAllOfIt: with certificates, and with only the rights that Cilium gives to readers from other
// clusters (spec wire.md §0), each side reads everything that either side publishes, and no request is denied.
func TestUsersOfAMeshMaySeeAllOfIt(t *testing.T) {
	t.Parallel()
	for name, start := range publishers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			certs := etcdtest.NewCerts(t)
			etcd := etcdtest.Start(t, etcdtest.WithTLS(certs))
			etcd.EnableAuth(t,
				etcdserver.User{Name: "admin-c2", Role: []etcdserver.Range{{Key: "\x00", End: "\x00", Write: true}}},
				etcdserver.User{Name: "remote", Role: etcdserver.RemoteReader("c2")})
			admin, remote := userFile(t, etcd, certs, "admin-c2"), userFile(t, etcd, certs, "remote")

			world := newWorld(newMaker(interop.Seed(t), "c2", 2), 50)
			p := start(t, admin, interop.Config("c2", 2))
			r, cilium := startReaders(t, remote), readWithCilium(t, map[string]string{"c2": remote})
			p.Put(t, world.objects())
			p.Synced(t, model.Published()...)
			r.see(t, "everything", soon, world.objects())
			cilium.see(t, "everything", soon, world.objects())
			r.quiet(t)
			interop.Quiet(t, "Cilium's reader", cilium.Complaints())
		})
	}
}

// userFile writes a client file for a user, who is identified by the certificate.
func userFile(t *testing.T, etcd *etcdtest.Server, certs *etcdtest.Certs, user string) string {
	t.Helper()
	cert, key := certs.Client(t, user)
	path := filepath.Join(t.TempDir(), "client")
	text := fmt.Sprintf("endpoints:\n- %s\ntrusted-ca-file: %s\ncert-file: %s\nkey-file: %s\n", etcd.Endpoint(), certs.CAFile, cert, key)
	interop.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
