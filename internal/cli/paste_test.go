package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

// TestCommandsCanBePasted: the suggested commands ask the same agent and read the same directory, for any name of the
// directory.
func TestCommandsCanBePasted(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	if got := a.Ask("status", "--server", a.Server); !strings.Contains(got.Out, "'mesh-agent troubleshoot c3 --server "+a.Server+"'") {
		t.Errorf("status: %s%s", got.Out, got.Err)
	}
	environment := map[string]string{"MESH_AGENT_SERVER": a.Server} // the next command has the same environment
	if got := clitest.With(environment, "", "").Run("status"); !strings.Contains(got.Out, "'mesh-agent troubleshoot c3'") {
		t.Errorf("with the server of the environment: %s%s", got.Out, got.Err)
	}

	plain := clitest.MeshDirectory(t, map[string]string{"c2": "endpoints: ['http://127.0.0.1:1']\nusername: x\n"})
	got := clitest.Troubleshooter().Run("troubleshoot", "c2", "--clustermesh-config", plain, "--cluster-name=east", "--cluster-id=3")
	if want := "'mesh-agent config check --cluster-id 3 --cluster-name east --clustermesh-config " + plain + "'"; !strings.Contains(got.Out, want) {
		t.Errorf("troubleshoot has no %s: %s%s", want, got.Out, got.Err)
	}

	// The name of a directory may contain a shell command. In the shell it has to remain one word.
	const evil = "a'b; touch marker $(touch marker) `touch marker`"
	there := filepath.Join(t.TempDir(), evil)
	if err := os.Rename(plain, there); err != nil {
		t.Fatal(err)
	}
	got = clitest.Troubleshooter().Run("troubleshoot", "c2", "--clustermesh-config", there)
	line := regexp.MustCompile(`mesh-agent config check --.*`).FindString(got.Out)
	if line == "" || strings.Contains(got.Out, "'mesh-agent config check --") {
		t.Fatalf("no command, or one in quotes that others would end: %s%s", got.Out, got.Err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", "set -- "+line+`; printf '%s|' "$@"`)
	shell.Dir = t.TempDir()
	out, err := shell.Output()
	if err != nil || !strings.HasPrefix(string(out), "mesh-agent|config|check|--clustermesh-config|"+there+"|") {
		t.Errorf("%s is %q, %v", line, out, err)
	}
	if _, err := os.Stat(filepath.Join(shell.Dir, "marker")); err == nil {
		t.Errorf("the shell ran what is in the name: %s", line)
	}

	for name, flags := range map[string][]string{
		"in a flag":       {"--kvstore-opt", "etcd.address=http://x:geheim@127.0.0.1:1"},
		"in one with two": {"--kvstore-opt", "etcd.address=http://x:geheim@127.0.0.1:1,etcd.qps=3"},
	} {
		got = clitest.Troubleshooter().Run(append([]string{"troubleshoot", "c2", "--clustermesh-config", there}, flags...)...)
		if strings.Contains(got.Out+got.Err, "geheim") {
			t.Errorf("a secret %s is shown: %s%s", name, got.Out, got.Err)
		}
	}
}

// TestCheckedFilesKnowTheirNames: the remedies of a check name the cluster, the agent and the file.
func TestCheckedFilesKnowTheirNames(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	dir := clitest.MeshDirectory(t, map[string]string{"c2": "endpoints: ['http://127.0.0.1:1']\nusername: x\npassword: geheim\n"})
	file := filepath.Join(dir, "c2")
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // that is the mistake
		t.Fatal(err)
	}
	got := clitest.Checker(dir, "--cluster-name=other", "--cluster-id=9", "--diff", "--server", a.Server)
	for _, want := range []string{"chmod o-r " + file, "--cluster-name c1 --cluster-id 1."} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("no %q: %s%s", want, got.Out, got.Err)
		}
	}
}
