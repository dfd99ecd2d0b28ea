// Package rightstest gives tests an etcd with the users and roles of a mesh, so that the tested code has only the
// rights of its mode.
package rightstest

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/own/rights"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// StartProcess runs the etcd of a cluster in a process of its own until the end of
// the test: with TLS, the users of [rights.Users], and authentication on.
func StartProcess(t testing.TB, cluster string, options ...etcdtest.Option) *etcdtest.Process {
	t.Helper()
	p := etcdtest.StartProcess(t, append(options, etcdtest.WithTLS(etcdtest.NewCerts(t)))...)
	e, err := etcd.Reach(t.Context(), As(t, p, "root"), 0, etcd.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := rights.Provision(t.Context(), e, cluster, "root", rights.Users(cluster)); err != nil {
		t.Fatal(err)
	}
	return p
}

// As returns the client configuration of a user.
func As(t testing.TB, p *etcdtest.Process, user string) *clientfile.Config {
	t.Helper()
	cfg, err := clientfile.Load(p.ConfigFileOf(t, user))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
