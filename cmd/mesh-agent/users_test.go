package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestUsersCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	must(t, os.WriteFile(file, []byte("users: [{name: node-7, role: node}, {name: remote-west, role: remote}]\n"), 0o600))
	none := file + "x"
	for args, want := range map[string]result{
		"show --cluster-name east":                              {0, "node      node              readwrite  cilium/state/nodes/v1/east/*\n", ""},
		"show --cluster-name east -o json":                      {0, "\"from\": \"cilium/cluster-config/east\",\n    \"keys\": \"cilium/cluster-config/east\"", ""},
		"show --cluster-name east --kvstore-users-file " + file: {0, "node, node-7", ""},
		"show --cluster-name east --kvstore-users-file " + none: {2, "", "--kvstore-users-file"},
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
	if _, err := s.ClientWith(t, "operator").Put(t.Context(), wire.ClusterConfigKey("east"), "{}"); err != nil {
		t.Error(err)
	}
	if _, err := s.ClientWith(t, "node").Put(t.Context(), wire.ClusterConfigKey("east"), "{}"); err == nil {
		t.Error("a node writes the cluster's configuration")
	}
}
