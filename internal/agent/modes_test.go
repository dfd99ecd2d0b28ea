package agent_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheModesTakeTheWholeTable: operate and mirror have each flag of run, with the same default.
func TestTheModesTakeTheWholeTable(t *testing.T) {
	t.Parallel()
	flags := func(cmd *cobra.Command) map[string]string {
		all := make(map[string]string)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { all[f.Name] = f.DefValue })
		return all
	}
	commands := make(map[string]*cobra.Command)
	for _, cmd := range cli.New("").Commands() {
		commands[cmd.Name()] = cmd
	}
	want := flags(commands["run"])
	for _, name := range []string{
		"cluster-name", "cluster-id", "max-connected-clusters", "node-name", "clustermesh-config", "clustermesh-sync-timeout", "clustermesh-cache-ttl",
		"kvstore-opt", "local-manifests", "kubernetes", "kubeconfig", "listen", "socket", "node-ip", "debug-pprof", "log-level", "log-format", "config",
	} {
		if _, there := want[name]; !there {
			t.Errorf("run has no --%s", name)
		}
	}
	for _, cmd := range []*cobra.Command{commands["operate"], commands["mirror"]} {
		if diff := cmp.Diff(want, flags(cmd)); diff != "" {
			t.Errorf("%s (-run +%s):\n%s", cmd.Name(), cmd.Name(), diff)
		}
	}
}

// TestBadInputEndsTheModes: it ends them with one line, before anything starts.
func TestBadInputEndsTheModes(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	file, users, none, kubeconfig := filepath.Join(dir, "file"), filepath.Join(dir, "users.yaml"), filepath.Join(dir, "none"), filepath.Join(dir, "kubeconfig")
	agenttest.Must(t, os.WriteFile(file, nil, 0o600))
	agenttest.Must(t, os.WriteFile(kubeconfig, []byte("kind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600))
	agenttest.Must(t, os.WriteFile(users, []byte("users: [{name: x, role: king}]\n"), 0o600))
	own := []string{"--cluster-name", "own", "--cluster-id", "1"}
	kv := []string{"--kvstore-opt", "etcd.address=http://127.0.0.1:1"}
	whole := func(args ...string) []string { return slices.Concat(args, own, kv) }
	type mistake struct {
		Args []string
		Want string
	}
	both := map[string]mistake{
		"no ID":                {Args: append([]string{"--cluster-name", "own"}, kv...), Want: "needs the name and the ID of the own cluster"},
		"no kvstore":           {Args: own, Want: "needs the own cluster's kvstore"},
		"an ID out of range":   {Args: append([]string{"--cluster-name", "own", "--cluster-id", "256"}, kv...), Want: "0..255"},
		"what it does not use": {Args: whole("--local-manifests", file, "--clustermesh-config", file), Want: "not a directory"},
	}
	for m, mistakes := range map[config.Mode]map[string]mistake{
		config.ModeOperate: {
			"two descriptions":             {Args: whole("--local-manifests", dir, "--kubernetes"), Want: "not both"},
			"manifests in a file":          {Args: whole("--local-manifests", file), Want: "not a directory"},
			"no kubeconfig":                {Args: whole("--kubeconfig", none), Want: "--kubeconfig"},
			"users that nobody is to make": {Args: whole("--kvstore-users-file", users), Want: "--kvstore-ensure-users"},
			"users of an unknown role":     {Args: whole("--kvstore-ensure-users", "--kvstore-users-file", users), Want: "king"},
			"no file of users":             {Args: whole("--kvstore-ensure-users", "--kvstore-users-file", none), Want: "no such file"},
			"nodes of nothing":             {Args: whole("--publish-nodes-and-addresses"), Want: "no description of the own cluster"},
			"slices in no Kubernetes":      {Args: whole("--endpoint-slices", "--local-manifests", dir), Want: "say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"},
			"imports in no Kubernetes":     {Args: whole("--mcs-api", "--local-manifests", dir), Want: "say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"},
			"definitions of nothing":       {Args: whole("--install-crds"), Want: "it is only for --mcs-api"},
			"an argument":                  {Args: whole("please"), Want: "unexpected argument"},
			"a mode that is none":          {Args: whole("--identity-allocation-mode", "etcd"), Want: "\"etcd\" is none of kvstore, doublewrite-readkvstore, doublewrite-readcrd, crd"},
			"no Kubernetes for its mode":   {Args: whole("--identity-allocation-mode", "crd"), Want: "say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"},
			"manifests in a mode of both":  {Args: whole("--identity-allocation-mode", "doublewrite-readcrd", "--local-manifests", dir), Want: "keeps identities in the Kubernetes API"},
			"no namespace for its mode":    {Args: whole("--identity-allocation-mode", "crd", "--kubeconfig", kubeconfig, "--k8s-namespace", ""), Want: "--k8s-namespace"},
			"no kvstore for its mode":      {Args: slices.Concat(own, []string{"--identity-allocation-mode", "doublewrite-readcrd", "--kubeconfig", kubeconfig}), Want: "say which with --kvstore-opt"},
			"two who write nodes":          {Args: slices.Concat(own, []string{"--identity-allocation-mode", "crd", "--kubeconfig", kubeconfig, "--publish-nodes-and-addresses"}), Want: "agents write their own nodes and addresses"},
		},
		config.ModeRun: {
			"a mode that is none":        {Args: whole("--identity-allocation-mode", "etcd"), Want: "is none of"},
			"no Kubernetes for its mode": {Args: whole("--identity-allocation-mode", "doublewrite-readkvstore"), Want: "keeps identities in the Kubernetes API"},
			"no kvstore for its mode":    {Args: []string{"--identity-allocation-mode", "doublewrite-readkvstore", "--kubeconfig", kubeconfig}, Want: "say which with --kvstore-opt"},
			"two who write nodes":        {Args: slices.Concat(own, []string{"--identity-allocation-mode", "crd", "--kubeconfig", kubeconfig, "--publish-nodes-and-addresses"}), Want: "agents write their own nodes and addresses"},
		},
		config.ModeMirror: {
			"nothing":                       {Args: nil, Want: "needs the name and the ID of the own cluster"},
			"a mesh directory that is none": {Args: whole("--clustermesh-config", file), Want: "not a directory"},
			"time that runs backwards":      {Args: whole("--drain-delay", "-1s"), Want: "--drain-delay"},
			"a rate below zero":             {Args: whole("--remote-write-rate", "-1"), Want: "--remote-write-rate"},
			"a rate that is no size":        {Args: whole("--remote-byte-rate", "fast"), Want: "--remote-byte-rate"},
			"a quota that is no size":       {Args: whole("--own-kvstore-quota", "-2Gi"), Want: "--own-kvstore-quota"},
			"a stop at the end":             {Args: whole("--own-kvstore-stop-at", "95"), Want: "--own-kvstore-stop-at"},
			"a lease that is too short":     {Args: whole("--kvstore-lease-ttl", "1s"), Want: "--kvstore-lease-ttl"},
			"an unknown flag":               {Args: whole("--nope"), Want: "unknown flag"},
		},
	} {
		if m != config.ModeRun { // this one has no required settings
			maps.Copy(mistakes, both)
		}
		for name, c := range mistakes {
			t.Run(string(m)+": "+name, func(t *testing.T) {
				t.Parallel()
				_, errs, code := agenttest.Call(t, append([]string{string(m), "--listen", "127.0.0.1:0", "--socket", filepath.Join(t.TempDir(), "s")}, c.Args...)...)
				if code != exit.Usage || !strings.HasPrefix(errs, "Error: ") || !strings.Contains(errs, c.Want) || strings.Count(errs, "\n") != 1 {
					t.Errorf("exit %d, want one line with %q, have %q", code, c.Want, errs)
				}
			})
		}
	}
}
