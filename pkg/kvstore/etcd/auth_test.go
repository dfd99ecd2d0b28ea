package etcd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// reader is a user with the rights of a reader from another cluster.
func reader(name, password string) etcdserver.User {
	return etcdserver.User{Name: name, Password: password, Role: etcdserver.RemoteReader("c2")}
}

// passwordFile is a client file with a user and a password.
func passwordFile(t *testing.T, endpoint, user, password string) *clientfile.Config {
	t.Helper()
	return configOf(t, etcdtest.ConfigFile(t, endpoint, nil, "username: "+user, "password: "+password))
}

func TestReaderMayReadWhatTheProtocolNeeds(t *testing.T) {
	t.Parallel()
	secure := etcdtest.Start(t, etcdtest.WithTLS(etcdtest.NewCerts(t)))
	secure.Put(t, "cilium/cluster-config/c2", "{}")
	secure.EnableAuth(t, reader("remote", ""))
	plain := etcdtest.Start(t)
	plain.Put(t, "cilium/cluster-config/c2", "{}")
	plain.EnableAuth(t, reader("remote", "pw"))

	for name, cfg := range map[string]*clientfile.Config{
		"known by certificate": configOf(t, secure.ConfigFileOf(t, "remote")),
		"known by password":    passwordFile(t, plain.Endpoint(), "remote", "pw"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mayRead(t, connect(t, cfg, quick()))
		})
	}
}

func mayRead(t *testing.T, e *Session) {
	t.Helper()
	ctx := waittest.Context(t)
	head, err := e.Head(ctx)
	must(t, err)
	config := wire.ClusterConfigPrefix + "/c2"
	if kv, _, err := e.Get(ctx, config); err != nil || kv == nil {
		t.Errorf("get the cluster configuration: %v, %v", kv, err)
	}
	for _, p := range []string{"cilium/state/nodes/v1/c2/", "cilium/synced/c2/", config, wire.HeartbeatKey} {
		list, watch := which(p)
		if _, err := e.List(ctx, p, func(kvstore.Page) error { return nil }, list...); err != nil {
			t.Errorf("list: %v", err)
		}
		st, err := e.Watch(ctx, p, head, watch...)
		if err != nil {
			t.Errorf("watch: %v", err)
			continue
		}
		st.Close()
	}
	for _, p := range []string{"cilium/state", "cilium/cluster-config/", "cilium/synced/c3/", "cilium/cache/nodes/v1/c2/"} {
		list, watch := which(p)
		_, err := e.List(ctx, p, func(kvstore.Page) error { return nil }, list...)
		denied(t, err, p)
		_, err = e.Watch(ctx, p, head, watch...)
		denied(t, err, p)
		_, _, err = e.Get(ctx, p)
		denied(t, err, p)
	}
	done := run(ctx, e, nil)
	waittest.Until(t, "the watchdog is well", func() bool {
		s := e.Status()
		return s.Connected && s.Server.Version != "" && s.Server.Error == ""
	})
	closes(t, e, done)
}

// TestReach: a user without the right to read even the heartbeat gets a session, and
// an answer about each key.
func TestReach(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	srv.Put(t, "k", "v")
	srv.EnableAuth(t, etcdserver.User{Name: "few", Password: "pw", Role: []etcdserver.Range{{Key: "k"}}})
	cfg := passwordFile(t, srv.Endpoint(), "few", "pw")
	kvtest.WantErr(t, refused(t, cfg, DefaultOptions()), kvstore.ErrPermissionDenied)
	e, err := Reach(waittest.Context(t), cfg, 0, DefaultOptions())
	must(t, err)
	defer e.Close()
	kv, at, err := e.Get(waittest.Context(t), "k")
	if err != nil || kv == nil || at.ClusterID != srv.ClusterID() {
		t.Errorf("%v %+v %v", kv, at, err)
	}
	_, _, err = e.Get(waittest.Context(t), "other")
	denied(t, err, "other")
	if s := e.Status(); s.Connected || s.Endpoint != srv.Endpoint() {
		t.Errorf("%+v", s)
	}
	if _, err := Reach(waittest.Context(t), passwordFile(t, srv.Endpoint(), "few", "nope"), 0, DefaultOptions()); err == nil {
		t.Error("a wrong password is good enough")
	}
}

func denied(t *testing.T, err error, key string) {
	t.Helper()
	kvtest.WantErr(t, err, kvstore.ErrPermissionDenied, key, "permission denied", "role does not cover")
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	srv.EnableAuth(t, reader("remote", "pw"))
	for user, password := range map[string]string{"remote": "nope", "nobody": "pw"} {
		err := refused(t, passwordFile(t, srv.Endpoint(), user, password), DefaultOptions())
		kvtest.WantErr(t, err, kvstore.ErrUnauthenticated, "check username and password")
	}
	kvtest.WantErr(t, refused(t, addresses(t, srv.Endpoint()), DefaultOptions()), kvstore.ErrUnauthenticated, "user name is empty")
	// A password is ignored when the server does not use authentication.
	connect(t, passwordFile(t, etcdtest.Start(t).Endpoint(), "remote", "pw"), DefaultOptions())
}

// TestTokenIsRenewed: after a restart the server does not accept its earlier tokens.
func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	p := etcdtest.StartProcess(t)
	must(t, etcdserver.EnableAuth(waittest.Context(t), p.Client(t), "root", reader("remote", "pw")))
	o := quick()
	o.MaxConsecutiveQuorumErrors = 1000
	e := connect(t, passwordFile(t, p.Endpoint(), "remote", "pw"), o)
	done := run(t.Context(), e, nil)
	p.Kill(t)
	waitConnected(t, e, false)
	p.Restart(t)
	waitConnected(t, e, true)
	watch(t, e, "cilium/state/ip/v1/default/", e.Status().Head)
	closes(t, e, done)
}

// TestPasswordWithRefusedPort tests the errors with authentication, which waits for a connection.
func TestPasswordWithRefusedPort(t *testing.T) {
	t.Parallel()
	err := refused(t, passwordFile(t, freeEndpoint(t), "remote", "pw"), DefaultOptions())
	kvtest.Contains(t, err, "connection refused", "nothing listens there")
	o := DefaultOptions()
	o.Dial = silent
	for patience := 100 * time.Millisecond; ; patience *= 2 { // until it is long enough to start to connect
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err = Connect(ctx, passwordFile(t, "http://192.0.2.1:2379", "remote", "pw"), 0, o)
		cancel()
		kvtest.WantErr(t, err, context.DeadlineExceeded)
		if strings.Contains(err.Error(), "still connecting to 192.0.2.1:2379") {
			return
		}
	}
}

// which returns the options that select a prefix, or one whole key.
func which(selection string) ([]kvstore.ReadOption, []kvstore.SelectOption) {
	if strings.HasSuffix(selection, "/") {
		return nil, nil
	}
	return []kvstore.ReadOption{kvstore.OneKey()}, []kvstore.SelectOption{kvstore.OneKey()}
}
