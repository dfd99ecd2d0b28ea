package etcd

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t, etcdtest.WithTLS(etcdtest.NewCerts(t)))
	srv.Put(t, "cilium/cluster-config/c2", "{}")
	srv.EnableAuth(t, reader("other", ""), etcdserver.User{Name: "writer", Role: []etcdserver.Range{{Key: "k", Write: true}}})
	as := func(user string) *Session {
		return connect(t, configOf(t, srv.ConfigFileOf(t, user)), quick())
	}
	ctx, root := waittest.Context(t), as("root")
	refused := func(user string) {
		t.Helper()
		_, err := Connect(ctx, configOf(t, srv.ConfigFileOf(t, user)), 0, quick())
		if !errors.Is(err, kvstore.ErrPermissionDenied) && !errors.Is(err, kvstore.ErrUnauthenticated) {
			t.Errorf("%s is let in: %v", user, err)
		}
	}
	roles := func(want ...string) {
		t.Helper()
		for range 2 { // the second time there is nothing to do
			must(t, root.EnsureUser(ctx, "new", want))
		}
		resp, err := srv.Client(t).UserGet(ctx, "new")
		must(t, err)
		if got := slices.Sorted(slices.Values(resp.Roles)); !slices.Equal(got, want) {
			t.Errorf("roles %q, want %q", got, want)
		}
	}
	refused("new")
	roles("other")
	e := as("new")
	if _, _, err := e.Get(ctx, "cilium/cluster-config/c2"); err != nil {
		t.Error(err)
	}
	roles("other", "writer")
	write(t, e, "k", nil)
	roles("writer")
	_, _, err := e.Get(ctx, "cilium/cluster-config/c2")
	kvtest.WantErr(t, err, kvstore.ErrPermissionDenied)
	roles()
	kvtest.WantErr(t, second(e.Put(ctx, "k", nil)), kvstore.ErrPermissionDenied)

	kvtest.WantErr(t, e.EnsureUser(ctx, "another", nil), kvstore.ErrPermissionDenied)
	err = root.EnsureUser(ctx, "new", []string{"no such role"})
	kvtest.WantErr(t, err, kvstore.ErrRoleNotFound, "new", "no such role", "role name not found", "create the role first")
	for range 2 {
		must(t, root.RemoveUser(ctx, "new"))
	}
	refused("new")
	removed := root.administer(ctx, "ensure user", "new", func(ctx context.Context) error {
		return root.setRoles(ctx, "new", nil, []string{"other"}) // as if another client had just removed the user
	})
	kvtest.WantErr(t, removed, kvstore.ErrUserNotFound)
	if errors.Is(removed, kvstore.ErrUnauthenticated) || hint.Code(removed) != "" {
		t.Errorf("a user who does not exist is taken for who asks: %v", removed)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	kvtest.WantErr(t, root.RemoveUser(gone, "new"), context.Canceled)
}
