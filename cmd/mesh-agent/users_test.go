package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestUsersCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	must(t, os.WriteFile(file, []byte("users: [{name: node-7, role: node}, {name: remote-west, role: remote}]\n"), 0o600))
	none, twice, builtin := file+"x", file+"2", file+"3"
	must(t, os.WriteFile(twice, []byte("users: [{name: node-7, role: node}, {name: node-7, role: node}, {name: node-7, role: root}]\n"), 0o600))
	must(t, os.WriteFile(builtin, []byte("users: [{name: remote, role: mirror}]\n"), 0o600))
	for args, want := range map[string]result{
		"show --cluster-name east":                                 {0, "node      node              readwrite  cilium/state/nodes/v1/east/*\n", ""},
		"show --cluster-name east -o json":                         {0, "\"from\": \"cilium/cluster-config/east\",\n    \"keys\": \"cilium/cluster-config/east\"", ""},
		"show --cluster-name east --kvstore-users-file " + file:    {0, "node, node-7", ""},
		"show --cluster-name east --kvstore-users-file " + none:    {2, "", "--kvstore-users-file"},
		"show --cluster-name east --kvstore-users-file " + twice:   {2, "", `user "node-7" has the roles node and root`},
		"show --cluster-name east --kvstore-users-file " + builtin: {2, "", `user "remote" has the roles remote and mirror`},
		"show":                       {2, "", "--cluster-name"},
		"show --cluster-name East":   {2, "", "--cluster-name"},
		"show me --cluster-name x":   {2, "", "unexpected argument"},
		"ensure --cluster-name east": {2, "", "--kvstore-opt"},
		"ensure --cluster-name east --kvstore-opt etcd.address=http://127.0.0.1:1 --timeout 1s": {2, "", "127.0.0.1:1"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			checkResult(t, args, with(nil, "", "").run(append([]string{"users"}, strings.Fields(args)...)...), want)
		})
	}
}

// TestUsersAreMadeByRootAlone: a job with root's certificate makes them, again and
// again; whoever else tries says who can, and has changed nothing.
func TestUsersAreMadeByRootAlone(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t, etcdtest.WithTLS(etcdtest.NewCerts(t)))
	ensure := func(user string) result {
		return with(nil, "", "").run("users", "ensure", "--cluster-name", "east", "--kvstore-opt", "etcd.config="+s.ConfigFileOf(t, user))
	}
	try := func(user string, want result) {
		t.Helper()
		checkResult(t, "users ensure as "+user, ensure(user), want)
	}
	who := "connect with the client certificate of root or admin-east"
	try("operator", result{1, "", who})
	if resp, err := s.Client(t).AuthStatus(t.Context()); err != nil || resp.Enabled {
		t.Errorf("authentication: %v, %v", resp, err)
	}
	done := result{0, "The etcd of cluster east has 7 users of 6 roles, and authentication is on.\n", ""}
	try("admin-east", done)
	try("root", done)
	try("operator", result{1, "", who})
	try("stranger", result{2, "", ""})
	root := s.ClientWith(t, "root")
	for name, config := range map[string]string{"east": `{"id":1}`, "west": `{"id":2,"capabilities":{"cached":true}}`} {
		if _, err := root.Put(t.Context(), wire.ClusterConfigKey(name), config); err != nil {
			t.Fatal(err)
		}
	}
	try("root", done)
	for _, other := range []string{"west", "north"} {
		got := with(nil, "", "").run("users", "ensure", "--cluster-name", other, "--kvstore-opt", "etcd.config="+s.ConfigFileOf(t, "root"))
		checkResult(t, "users ensure of "+other, got, result{1, "", "this etcd holds the configuration of east, and none of " + other})
	}
	if _, err := s.ClientWith(t, "operator").Put(t.Context(), wire.ClusterConfigKey("east"), "{}"); err != nil {
		t.Error(err)
	}
	if _, err := s.ClientWith(t, "node").Put(t.Context(), wire.ClusterConfigKey("east"), "{}"); err == nil {
		t.Error("a node writes the cluster's configuration")
	}
}
