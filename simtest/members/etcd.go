package members

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

// The etcd users of a cluster's processes, and root, which no long-running process uses.
// The user that reads the copies has the cluster's name: see [Cluster.localUser].
const (
	rootUser     = "root"
	nodeUser     = "node"
	operatorUser = "operator"
	mirrorUser   = "mirror"
	remoteUser   = "remote"
)

// localUser reads the copies of the other clusters.
func (c *Cluster) localUser() string { return "local-" + c.Name }

// serve starts the cluster's etcd. It has an authority of its own: a certificate of one cluster is not valid in another
// one.
func (c *Cluster) serve() error {
	if err := os.MkdirAll(c.pki(), 0o700); err != nil {
		return err
	}
	ca, err := pki.NewCA("etcd of " + c.Name)
	if err != nil {
		return err
	}
	authority, err := ca.Write(c.pki(), "ca")
	if err != nil {
		return err
	}
	pair, err := ca.Server([]string{"127.0.0.1", "localhost"})
	if err != nil {
		return err
	}
	cert, key, err := pair.Write(c.pki(), "server")
	if err != nil {
		return err
	}
	for _, user := range []string{rootUser, nodeUser, operatorUser, mirrorUser, remoteUser, c.localUser()} {
		pair, err := ca.Client(user)
		if err == nil {
			_, _, err = pair.Write(c.pki(), user)
		}
		if err != nil {
			return err
		}
	}
	c.Etcd, err = etcdserver.Start(etcdserver.Config{TLS: &etcdserver.TLS{CertFile: cert, KeyFile: key, CAFile: authority, ClientAuth: true}})
	return err
}

// ensureUsers creates the users of the etcd, like a job of an installation.
func (m *Mesh) ensureUsers(c *Cluster) error {
	out, err := exec.Command(m.Program, "users", "ensure", "--cluster-name", c.Name, "--kvstore-opt", "etcd.config="+c.ClientFile(rootUser)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("giving the etcd of %s its users: %w: %s", c.Name, err, out)
	}
	return nil
}

// clientFile writes the client file of the cluster's etcd for one of its users.
func (c *Cluster) clientFile(user string) string {
	file := func(name string) string { return filepath.Join(c.pki(), name) }
	return fmt.Sprintf("endpoints:\n- %s\ntrusted-ca-file: %s\ncert-file: %s\nkey-file: %s\n",
		c.Etcd.Endpoint(), file("ca.crt"), file(user+".crt"), file(user+".key"))
}

func (c *Cluster) pki() string { return filepath.Join(c.Dir, "pki") }
