package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestUsersCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	agenttest.Must(t, os.WriteFile(file, []byte("users: [{name: node-7, role: node}, {name: remote-west, role: remote}]\n"), 0o600))
	none, twice, builtin := file+"x", file+"2", file+"3"
	agenttest.Must(t, os.WriteFile(twice, []byte("users: [{name: node-7, role: node}, {name: node-7, role: node}, {name: node-7, role: root}]\n"), 0o600))
	agenttest.Must(t, os.WriteFile(builtin, []byte("users: [{name: remote, role: mirror}]\n"), 0o600))
	for args, want := range map[string]clitest.Result{
		"show --cluster-name east":                                 {Code: 0, Out: "node      node              readwrite  cilium/state/nodes/v1/east/*\n", Err: ""},
		"show --cluster-name east -o json":                         {Code: 0, Out: "\"from\": \"cilium/cluster-config/east\",\n    \"keys\": \"cilium/cluster-config/east\"", Err: ""},
		"show --cluster-name east --kvstore-users-file " + file:    {Code: 0, Out: "node, node-7", Err: ""},
		"show --cluster-name east --kvstore-users-file " + none:    {Code: 2, Out: "", Err: "--kvstore-users-file"},
		"show --cluster-name east --kvstore-users-file " + twice:   {Code: 2, Out: "", Err: `user "node-7" has the roles node and root`},
		"show --cluster-name east --kvstore-users-file " + builtin: {Code: 2, Out: "", Err: `user "remote" has the roles remote and mirror`},
		"show":                       {Code: 2, Out: "", Err: "--cluster-name"},
		"show --cluster-name East":   {Code: 2, Out: "", Err: "--cluster-name"},
		"show me --cluster-name x":   {Code: 2, Out: "", Err: "unexpected argument"},
		"ensure --cluster-name east": {Code: 2, Out: "", Err: "--kvstore-opt"},
		"ensure --cluster-name east --kvstore-opt etcd.address=http://127.0.0.1:1 --timeout 1s": {Code: 2, Out: "", Err: "127.0.0.1:1"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			clitest.CheckResult(t, args, clitest.With(nil, "", "").Run(append([]string{"users"}, strings.Fields(args)...)...), want)
		})
	}
}

// TestUsersAreMadeByRootAlone: a job with the certificate of root or of the cluster's admin makes the users,
// repeatedly. For any other user the command fails, names these certificates, and changes nothing.
func TestUsersAreMadeByRootAlone(t *testing.T) {
	t.Parallel()
	s := etcdtest.Start(t, etcdtest.WithTLS(etcdtest.NewCerts(t)))
	ensure := func(user string) clitest.Result {
		return clitest.With(nil, "", "").Run("users", "ensure", "--cluster-name", "east", "--kvstore-opt", "etcd.config="+s.ConfigFileOf(t, user))
	}
	try := func(user string, want clitest.Result) {
		t.Helper()
		clitest.CheckResult(t, "users ensure as "+user, ensure(user), want)
	}
	who := "connect with the client certificate of root or admin-east"
	try("operator", clitest.Result{Code: 1, Out: "", Err: who})
	if resp, err := s.Client(t).AuthStatus(t.Context()); err != nil || resp.Enabled {
		t.Errorf("authentication: %v, %v", resp, err)
	}
	done := clitest.Result{Code: 0, Out: "The etcd of cluster east has 7 users of 6 roles, and authentication is on.\n", Err: ""}
	try("admin-east", done)
	try("root", done)
	try("operator", clitest.Result{Code: 1, Out: "", Err: who})
	try("stranger", clitest.Result{Code: 2, Out: "", Err: ""})
	root := s.ClientWith(t, "root")
	for name, config := range map[string]string{"east": `{"id":1}`, "west": `{"id":2,"capabilities":{"cached":true}}`} {
		if _, err := root.Put(t.Context(), wire.ClusterConfigKey(name), config); err != nil {
			t.Fatal(err)
		}
	}
	try("root", done)
	for _, other := range []string{"west", "north"} {
		got := clitest.With(nil, "", "").Run("users", "ensure", "--cluster-name", other, "--kvstore-opt", "etcd.config="+s.ConfigFileOf(t, "root"))
		clitest.CheckResult(t, "users ensure of "+other, got, clitest.Result{Code: 1, Out: "", Err: "this etcd holds the configuration of east, and none of " + other})
	}
	if _, err := s.ClientWith(t, "operator").Put(t.Context(), wire.ClusterConfigKey("east"), "{}"); err != nil {
		t.Error(err)
	}
	if _, err := s.ClientWith(t, "node").Put(t.Context(), wire.ClusterConfigKey("east"), "{}"); err == nil {
		t.Error("a node writes the cluster's configuration")
	}
}
