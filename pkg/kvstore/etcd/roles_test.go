package etcd

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestRoles: users can read exactly the keys of their role, also after a change of the role.
// Before authentication is enabled, every user can read all keys.
func TestRoles(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t, etcdtest.WithTLS(etcdtest.NewCerts(t)))
	srv.Put(t, "a/1", "x", "a/2", "x", "b/1", "x", "whole", "x", "wholesale", "x", ".prefix", "x", ".prefix2", "x")
	ctx := waittest.Context(t)
	as := func(user string) *Session {
		return connect(t, configOf(t, srv.ConfigFileOf(t, user)), quick())
	}
	root := as("root")
	must(t, root.EnsureRole(ctx, "root", nil))
	must(t, root.EnsureUser(ctx, "root", []string{"root"}))
	for range 2 { // the second time there is nothing to do
		must(t, root.EnsureRole(ctx, "reader", []Access{
			{Prefix: "a/"}, {Prefix: "whole", Whole: true}, {Prefix: ".prefix"}, {Prefix: wire.HeartbeatKey},
		}))
		must(t, root.EnsureUser(ctx, "reader", []string{"reader"}))
	}
	for range 2 {
		must(t, root.EnableAuth(ctx))
	}
	reader := as("reader")
	check := func(key string, want bool) {
		t.Helper()
		_, _, err := reader.Get(ctx, key)
		if want && err != nil {
			t.Errorf("%s: %v", key, err)
		} else if !want {
			kvtest.WantErr(t, err, kvstore.ErrPermissionDenied)
		}
	}
	for _, key := range []string{"a/1", "a/2", "whole", ".prefix", ".prefix2"} {
		check(key, true)
	}
	for _, key := range []string{"b/1", "wholesale", "a"} {
		check(key, false)
	}
	kvtest.WantErr(t, second(reader.Put(ctx, "a/1", nil)), kvstore.ErrPermissionDenied)

	must(t, root.EnsureRole(ctx, "reader", []Access{{Prefix: "b/", Write: true}, {Prefix: wire.HeartbeatKey}}))
	check("a/1", false)
	check("b/1", true)
	write(t, reader, "b/1", nil)
	kvtest.WantErr(t, reader.EnsureRole(ctx, "reader", nil), kvstore.ErrPermissionDenied)
}
