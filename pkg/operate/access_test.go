package operate

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestTheUsersOfAMesh: what each of them can read and write after they were made,
// and that making them again changes nothing.
func TestTheUsersOfAMesh(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	srv := etcdtest.Start(t, etcdtest.WithTLS(certs))
	for _, key := range []string{
		wire.HeartbeatKey, wire.ClusterConfigKey("east"), wire.ClusterConfigKey("west"),
		wire.SyncedKey("east", wire.Nodes, false), wire.SyncedKey("west", wire.Nodes, true),
		wire.Nodes.Key("east", false, "n"), wire.Nodes.Key("west", true, "n"), "other",
	} {
		srv.Put(t, key, "{}")
	}
	as := func(user string) *etcd.Session {
		t.Helper()
		cert, key := certs.Client(t, user)
		file := filepath.Join(t.TempDir(), "east")
		must(t, os.WriteFile(file, []byte(strings.Join([]string{
			"endpoints: [" + srv.Endpoint() + "]", "trusted-ca-file: " + certs.CAFile, "cert-file: " + cert, "key-file: " + key,
		}, "\n")), 0o600))
		cfg, err := clientfile.Load(file)
		must(t, err)
		o := etcd.DefaultOptions()
		o.QPS = 0
		e, err := etcd.Reach(t.Context(), cfg, 0, o)
		must(t, err)
		t.Cleanup(e.Close)
		return e
	}
	ctx := waittest.Context(t)
	users := append(Users("east"), User{"remote-west", RoleRemote})
	admin := as("admin-east")
	if err := Provision(ctx, admin, "east", "remote", users); err == nil || !strings.Contains(err.Error(), "admin-east") {
		t.Errorf("who would be shut out was let do it: %v", err)
	}
	for range 2 {
		must(t, Provision(ctx, admin, "east", "admin-east", users))
	}

	state := []string{
		wire.Nodes.Prefix("east", false), wire.Services.Prefix("east", false), wire.EndpointSlices.Prefix("east", false),
		wire.ServiceExports.Prefix("east", false), wire.Identities.Prefix("east", false), wire.IPs.Prefix("east", false),
		wire.ClusterConfigKey("east"), wire.SyncedDir("east"), wire.HeartbeatKey,
	}
	cache := []string{
		wire.Nodes.Prefix("west", true), wire.Services.Prefix("west", true), wire.Identities.Prefix("west", true), wire.IPs.Prefix("west", true),
		wire.SyncedDir("west"), wire.ClusterConfigKey("west"),
	}
	common := []string{wire.ClusterConfigKey("east"), wire.SyncedDir("east"), wire.HeartbeatKey}
	all := append(append([]string{"other"}, state...), cache...)
	for user, allowed := range map[string][]string{
		"remote": state, "remote-west": state, "local-east": append(append([]string{}, cache...), common...), "admin-east": all, "root": all,
	} {
		e := as(user)
		at, err := e.List(ctx, wire.HeartbeatKey, func(kvstore.Page) error { return nil })
		must(t, err)
		for _, prefix := range all {
			_, err := e.List(ctx, prefix, func(kvstore.Page) error { return nil })
			if want := slices.Contains(allowed, prefix); want && err != nil {
				t.Errorf("%s cannot list %s: %v", user, prefix, err)
			} else if !want && !errors.Is(err, kvstore.ErrPermissionDenied) {
				t.Errorf("%s, who may not, lists %s: %v", user, prefix, err)
			}
			if slices.Contains(allowed, prefix) {
				continue
			}
			stream, err := e.Watch(ctx, prefix, at)
			if err == nil {
				_, err = stream.Recv()
				stream.Close()
			}
			if !errors.Is(err, kvstore.ErrPermissionDenied) {
				t.Errorf("%s, who may not, watches %s: %v", user, prefix, err)
			}
		}
		for _, key := range []string{wire.Nodes.Key("east", false, "n"), wire.ClusterConfigKey("east"), "other", "cilium/.initlock/x"} {
			_, err := e.Put(ctx, key, []byte("{}"))
			if writes := user == "admin-east" || user == "root"; writes && err != nil {
				t.Errorf("%s cannot write %s: %v", user, key, err)
			} else if !writes && !errors.Is(err, kvstore.ErrPermissionDenied) {
				t.Errorf("%s writes %s: %v", user, key, err)
			}
		}
	}
}

func TestUsersFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	read := func(text string) ([]User, error) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return ReadUsers(file, "east")
	}
	users, err := read("users:\n- {name: remote-west, role: remote}\n- {name: east, role: remote}\n- {name: boss, role: root}\n")
	must(t, err)
	if diff := cmp.Diff([]User{{"remote-west", "remote"}, {"boss", "root"}}, users); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"users: [{role: remote}]":          "has no name",
		"users: [{name: x, role: reader}]": `role "reader"`,
		"users: [{name: x, rule: remote}]": "rule",
		"users: {":                         "users: [{name: remote-east, role: remote}]",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadUsers(file+"x", "east"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
