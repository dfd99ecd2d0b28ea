package main

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
)

// TestTheModesTakeTheWholeTable: each flag of run is one of operate and mirror,
// with the same default.
func TestTheModesTakeTheWholeTable(t *testing.T) {
	t.Parallel()
	flags := func(cmd *cobra.Command) map[string]string {
		all := make(map[string]string)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { all[f.Name] = f.DefValue })
		return all
	}
	want := flags(newRunCommand())
	for _, name := range []string{
		"cluster-name", "cluster-id", "max-connected-clusters", "node-name", "clustermesh-config", "clustermesh-sync-timeout", "clustermesh-cache-ttl",
		"kvstore-opt", "local-manifests", "kubernetes", "kubeconfig", "listen", "socket", "node-ip", "debug-pprof", "log-level", "log-format", "config",
	} {
		if _, there := want[name]; !there {
			t.Errorf("run has no --%s", name)
		}
	}
	for _, cmd := range []*cobra.Command{newOperateCommand(), newMirrorCommand()} {
		if diff := cmp.Diff(want, flags(cmd)); diff != "" {
			t.Errorf("%s (-run +%s):\n%s", cmd.Name(), cmd.Name(), diff)
		}
	}
}

// TestBadInputEndsTheModes: with one line, before anything starts.
func TestBadInputEndsTheModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, users, none, kubeconfig := filepath.Join(dir, "file"), filepath.Join(dir, "users.yaml"), filepath.Join(dir, "none"), filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.WriteFile(kubeconfig, []byte("kind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600))
	must(t, os.WriteFile(users, []byte("users: [{name: x, role: king}]\n"), 0o600))
	own := []string{"--cluster-name", "own", "--cluster-id", "1"}
	kv := []string{"--kvstore-opt", "etcd.address=http://127.0.0.1:1"}
	whole := func(args ...string) []string { return slices.Concat(args, own, kv) }
	type mistake struct {
		args []string
		want string
	}
	both := map[string]mistake{
		"no ID":                {append([]string{"--cluster-name", "own"}, kv...), "needs the name and the ID of the own cluster"},
		"no kvstore":           {own, "needs the own cluster's kvstore"},
		"an ID out of range":   {append([]string{"--cluster-name", "own", "--cluster-id", "256"}, kv...), "0..255"},
		"what it does not use": {whole("--local-manifests", file, "--clustermesh-config", file), "not a directory"},
	}
	for m, mistakes := range map[mode]map[string]mistake{
		modeOperate: {
			"two descriptions":             {whole("--local-manifests", dir, "--kubernetes"), "not both"},
			"manifests in a file":          {whole("--local-manifests", file), "not a directory"},
			"no kubeconfig":                {whole("--kubeconfig", none), "--kubeconfig"},
			"users that nobody is to make": {whole("--kvstore-users-file", users), "--kvstore-ensure-users"},
			"users of an unknown role":     {whole("--kvstore-ensure-users", "--kvstore-users-file", users), "king"},
			"no file of users":             {whole("--kvstore-ensure-users", "--kvstore-users-file", none), "no such file"},
			"nodes of nothing":             {whole("--publish-nodes-and-addresses"), "no description of the own cluster"},
			"an argument":                  {whole("please"), "unexpected argument"},
			"a mode that is none":          {whole("--identity-allocation-mode", "etcd"), "\"etcd\" is none of kvstore, doublewrite-readkvstore, doublewrite-readcrd, crd"},
			"no Kubernetes for its mode":   {whole("--identity-allocation-mode", "crd"), "say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"},
			"manifests in a mode of both":  {whole("--identity-allocation-mode", "doublewrite-readcrd", "--local-manifests", dir), "keeps identities in the Kubernetes API"},
			"no namespace for its mode":    {whole("--identity-allocation-mode", "crd", "--kubeconfig", kubeconfig, "--k8s-namespace", ""), "--k8s-namespace"},
			"no kvstore for its mode":      {slices.Concat(own, []string{"--identity-allocation-mode", "doublewrite-readcrd", "--kubeconfig", kubeconfig}), "say which with --kvstore-opt"},
			"two who write nodes":          {slices.Concat(own, []string{"--identity-allocation-mode", "crd", "--kubeconfig", kubeconfig, "--publish-nodes-and-addresses"}), "agents write their own nodes and addresses"},
		},
		modeRun: {
			"a mode that is none":        {whole("--identity-allocation-mode", "etcd"), "is none of"},
			"no Kubernetes for its mode": {whole("--identity-allocation-mode", "doublewrite-readkvstore"), "keeps identities in the Kubernetes API"},
			"no kvstore for its mode":    {[]string{"--identity-allocation-mode", "doublewrite-readkvstore", "--kubeconfig", kubeconfig}, "say which with --kvstore-opt"},
			"two who write nodes":        {slices.Concat(own, []string{"--identity-allocation-mode", "crd", "--kubeconfig", kubeconfig, "--publish-nodes-and-addresses"}), "agents write their own nodes and addresses"},
		},
		modeMirror: {
			"nothing":                       {nil, "needs the name and the ID of the own cluster"},
			"a mesh directory that is none": {whole("--clustermesh-config", file), "not a directory"},
			"time that runs backwards":      {whole("--drain-delay", "-1s"), "--drain-delay"},
			"a rate below zero":             {whole("--remote-write-rate", "-1"), "--remote-write-rate"},
			"a rate that is no size":        {whole("--remote-byte-rate", "fast"), "--remote-byte-rate"},
			"a quota that is no size":       {whole("--own-kvstore-quota", "-2Gi"), "--own-kvstore-quota"},
			"a stop at the end":             {whole("--own-kvstore-stop-at", "95"), "--own-kvstore-stop-at"},
			"a lease that is too short":     {whole("--kvstore-lease-ttl", "1s"), "--kvstore-lease-ttl"},
			"an unknown flag":               {whole("--nope"), "unknown flag"},
		},
	} {
		if m != modeRun { // which needs nothing
			maps.Copy(mistakes, both)
		}
		for name, c := range mistakes {
			t.Run(string(m)+": "+name, func(t *testing.T) {
				t.Parallel()
				_, errs, code := call(t, append([]string{string(m), "--listen", "127.0.0.1:0", "--socket", filepath.Join(t.TempDir(), "s")}, c.args...)...)
				if code != exitUsage || !strings.HasPrefix(errs, "Error: ") || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
					t.Errorf("exit %d, want one line with %q, have %q", code, c.want, errs)
				}
			})
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
