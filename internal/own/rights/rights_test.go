package rights

import (
	"context"
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// table has the rights of each role for each range of the etcd of the cluster east: r reads, rw reads and writes, -
// neither; r+ reads the whole range and writes some of its keys, which have lines of their own, but never all of them.
// A range that ends in a slash is a prefix, any other is one key.
const table = `
range                                          node operator mirror remote local
cilium/.heartbeat                              r    rw       r      r      r
cilium/.heartbeat2                             r    r        r      r      r
cilium/.initlock/1                             -    -        -      -      -
cilium/mesh-agent-operator-lock/               -    rw       -      -      -
cilium/kvstoremesh-lock/                       -    -        rw     -      -
cilium/cluster-config/east                     r    rw       r      r      r
cilium/cluster-config/                         -    r+       r+     -      r
cilium/cluster-config/a                        -    r        rw     -      r
cilium/cluster-config/east-2                   -    r        rw     -      r
cilium/cluster-config/east2                    -    r        rw     -      r
cilium/cluster-config/west                     -    r        rw     -      r
cilium/cluster-config                          -    -        -      -      -
cilium/synced/                                 -    -        r+     -      r
cilium/synced/east/                            r    rw       r      r      r
cilium/synced/east-2/                          -    -        rw     -      r
cilium/synced/east2/                           -    -        rw     -      r
cilium/synced/west/                            -    -        rw     -      r
cilium/state/                                  r    r        -      r      -
cilium/state/nodes/v1/                         r    r        -      r      -
cilium/state/nodes/v1/east/                    rw   rw       -      r      -
cilium/state/nodes/v1/west/                    r    r        -      r      -
cilium/state/ip/v1/default/                    rw   rw       -      r      -
cilium/state/ip/v1/other/                      r    r        -      r      -
cilium/state/identities/v1/                    r    r        -      r      -
cilium/state/identities/v1/id/                 rw   rw       -      r      -
cilium/state/identities/v1/value/              rw   r        -      r      -
cilium/state/identities/v1/locks/              rw   rw       -      r      -
cilium/state/services/v1/east/                 r    rw       -      r      -
cilium/state/services/v1/west/                 r    r        -      r      -
cilium/state/endpointslices/v1/east/           r    rw       -      r      -
cilium/state/serviceexports/v1/east/           r    rw       -      r      -
cilium/state/cnpstatuses/                      r    r        -      r      -
cilium/cache/                                  -    -        rw     -      r
cilium/cache/nodes/v1/west/                    -    -        rw     -      r
cilium/cache/identities/v1/west/id/            -    -        rw     -      r
cilium/cache/ip/v1/east/                       -    -        rw     -      r
cilium/                                        -    -        -      -      -
other                                          -    -        -      -      -
`

// protected is the etcd of the cluster east after it was given its users.
type protected struct{ etcd *etcdtest.Server }

func newProtected(t *testing.T, more ...User) *protected {
	t.Helper()
	p := &protected{etcdtest.Start(t, etcdtest.WithTLS(etcdtest.NewCerts(t)))}
	waittest.Must(t, Provision(t.Context(), p.as(t, "admin-east"), "east", "admin-east", append(Users("east"), more...)))
	return p
}

func (p *protected) as(t *testing.T, user string) *etcd.Session {
	t.Helper()
	cfg, err := clientfile.Load(p.etcd.ConfigFileOf(t, user))
	waittest.Must(t, err)
	o := etcd.DefaultOptions()
	o.QPS = 0
	e, err := etcd.Reach(t.Context(), cfg, 0, o)
	waittest.Must(t, err)
	t.Cleanup(e.Close)
	return e
}

// TestEachRoleHasItsRangesAlone: every user, in every range, reading and writing.
func TestEachRoleHasItsRangesAlone(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	p := newProtected(t, User{"node-7", RoleNode}, User{"remote-west", RoleRemote})
	rows := strings.Split(strings.TrimSpace(table), "\n")
	roles := strings.Fields(rows[0])[1:]
	users := map[string][]string{
		RoleNode: {"node", "node-7"}, RoleOperator: {"operator"}, RoleMirror: {"mirror"}, RoleRemote: {"remote", "remote-west"}, RoleLocal: {"local-east"},
	}
	if len(roles)+1 != len(Roles()) {
		t.Errorf("the table has %v, there are %v", roles, Roles())
	}
	for i, role := range roles {
		for _, user := range users[role] {
			t.Run(user, func(t *testing.T) {
				t.Parallel()
				c := caller{p.as(t, user), p.etcd.ClientWith(t, user)}
				for _, row := range rows[1:] {
					cells := strings.Fields(row)
					c.check(t, cells[0], cells[1+i])
				}
				c.checkAdministration(t)
			})
		}
	}
	t.Run("root", func(t *testing.T) {
		t.Parallel()
		c := caller{p.as(t, "root"), p.etcd.ClientWith(t, "root")}
		for _, row := range rows[1:] {
			c.check(t, strings.Fields(row)[0], "rw")
		}
	})
}

// caller is a user, with this project's client, and with etcd's where ours asks less.
type caller struct {
	*etcd.Session
	raw *clientv3.Client
}

// check tries every way to read and to write a range.
func (c caller) check(t *testing.T, name, rights string) {
	t.Helper()
	ctx := waittest.Context(t)
	key := name
	var whole []clientv3.OpOption
	if strings.HasSuffix(name, "/") {
		key, whole = name+"probe of "+t.Name(), []clientv3.OpOption{clientv3.WithPrefix()}
	}
	expect := func(do string, allowed bool, err error) {
		t.Helper()
		if denied := errors.Is(err, kvstore.ErrPermissionDenied) || err != nil && strings.Contains(err.Error(), "permission denied"); allowed && err != nil || !allowed && !denied {
			t.Errorf("%s %s, where %q is right: %v", do, name, rights, err)
		}
	}
	reads, writes := strings.Contains(rights, "r"), strings.Contains(rights, "w")
	_, err := c.raw.Get(ctx, name, append(whole, clientv3.WithKeysOnly())...)
	expect("read", reads, err)
	expect("watch", reads, c.watches(ctx, name))
	if whole != nil {
		_, err = c.raw.Delete(ctx, name, clientv3.WithPrefix())
		expect("delete all of", writes, err)
	}
	if strings.HasSuffix(rights, "+") {
		return
	}
	_, err = c.Put(ctx, key, []byte("{}"))
	expect("put", writes, err)
	_, err = c.Put(ctx, key, []byte("{}"), kvstore.Leased())
	expect("put with a lease", writes, err)
	_, err = c.Delete(ctx, key)
	expect("delete", writes, err)
	_, err = c.raw.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), "=", -1)).Else(clientv3.OpPut(key, "")).Commit()
	expect("write in a transaction", writes, err)
	if writes {
		_, err = c.raw.Delete(ctx, key)
		expect("clean up", true, err)
	}
}

// watches opens a watch; one that is refused ends at once.
func (c caller) watches(ctx context.Context, name string) error {
	at, err := c.Head(ctx)
	if err != nil {
		return err
	}
	var which []kvstore.SelectOption
	if !strings.HasSuffix(name, "/") {
		which = append(which, kvstore.OneKey())
	}
	stream, err := c.Watch(ctx, name, at, which...)
	if err == nil {
		stream.Close()
	}
	return err
}

// checkAdministration: only root changes users and roles, and turns authentication off.
func (c caller) checkAdministration(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for do, err := range map[string]error{
		"make a user":         c.EnsureUser(ctx, "mallory", nil),
		"make a role":         c.EnsureRole(ctx, "node", []etcd.Access{write("")}),
		"take another's role": c.EnsureUser(ctx, "remote", []string{RoleRoot}),
		"remove a user":       c.RemoveUser(ctx, "remote"),
	} {
		if !errors.Is(err, kvstore.ErrPermissionDenied) {
			t.Errorf("%s: %v", do, err)
		}
	}
	if _, err := c.raw.AuthDisable(ctx); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("authentication is turned off: %v", err)
	}
}

// TestNobodyEndsTheLeaseOfAnotherRole: it would delete what the lease holds.
func TestNobodyEndsTheLeaseOfAnotherRole(t *testing.T) {
	t.Parallel()
	p := newProtected(t)
	ctx := t.Context()
	operator := p.etcd.ClientWith(t, "operator")
	lease, err := operator.Grant(ctx, 600)
	waittest.Must(t, err)
	_, err = operator.Put(ctx, wire.ClusterConfigKey("east"), "{}", clientv3.WithLease(lease.ID))
	waittest.Must(t, err)
	for _, user := range []string{"node", "mirror", "remote", "local-east"} {
		c := p.etcd.ClientWith(t, user)
		if _, err := c.Revoke(ctx, lease.ID); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s ends the operator's lease: %v", user, err)
		}
	}
	if resp, err := operator.Get(ctx, wire.ClusterConfigKey("east")); err != nil || len(resp.Kvs) != 1 {
		t.Errorf("%v, %v", resp, err)
	}
}
