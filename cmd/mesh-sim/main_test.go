package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// asProgram is the variable that makes the test binary run as mesh-sim.
const asProgram = "MESH_SIM_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

func simulator(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func TestBadFlagsExitWithTwoAndOneLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, args := range map[string][]string{
		"unknown flag":          {"--nonsense"},
		"not a number":          {"--nodes", "many"},
		"no cluster":            {"--clusters", "0"},
		"ID out of range":       {"--first-id", "254"},
		"bad name":              {"--names", "UPPER"},
		"two ways to name":      {"--names", "a,b", "--clusters", "2"},
		"bad maximum":           {"--max-connected-clusters", "256"},
		"several mistakes":      {"--nodes", "-1", "--services", "-1"},
		"bad range":             {"--pod-range", "10"},
		"argument without dash": {"run"},
		"no such command":       {"--", "/no/such/program"},
		"directory is a file":   {"--dir", file},
		"socket is a file":      {"--ctl-socket", file},
		"too many cached":       {"--cached", "4"},
		"slices only of none":   {"--slices-only", "--endpoint-slices=false"},
		"no local cluster":      {"--", "/bin/echo", "{local}"},
		"unknown ctl command":   {"ctl", "flee"},
		"ctl without argument":  {"ctl", "kill"},
		"unknown ctl flag":      {"ctl", "kill", "cluster1", "--hard"},
		"unknown output":        {"ctl", "list", "-o", "xml"},
		"no simulator":          {"ctl", "list", "--socket", file},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := simulator(t, args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != 2 {
				t.Errorf("exit code %d", code)
			}
			line := stderr.String()
			if !strings.HasPrefix(line, "mesh-sim: ") || strings.Count(line, "\n") != 1 || stdout.Len() > 0 {
				t.Errorf("stderr %q, stdout %q", line, stdout.String())
			}
		})
	}
}

func TestSignalsEndItCleanly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		signal syscall.Signal
		args   []string
	}{
		{"interrupted", syscall.SIGINT, nil},
		{"terminated", syscall.SIGTERM, []string{"--no-tls"}},
		{"with a command", syscall.SIGINT, []string{"--", "sh", "-c", "sleep 1000 & wait"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			args := append([]string{"--churn", "20", "--dir", base + "/mesh", "--data-dir", base + "/data"}, tc.args...)
			temp := t.TempDir()
			cmd, printed, rest := start(t, temp, args...)
			if strings.Count(printed, "\ncluster") != 2 || !strings.Contains(printed, "ready: 3 clusters") || !strings.Contains(printed, base+"/mesh") {
				t.Errorf("it printed %s", printed)
			}
			must(t, cmd.Process.Signal(tc.signal))
			_, _ = io.Copy(io.Discard, rest)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, cmd.Stderr)
			}
			for _, dir := range []string{base, temp} {
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("left over in %s: %v", dir, left)
				}
			}
		})
	}
}

// start runs a simulator with this temporary directory. It returns the output until the simulator was ready, and the
// rest of it.
func start(t *testing.T, temp string, args ...string) (cmd *exec.Cmd, printed string, rest io.Reader) {
	t.Helper()
	like := simulator(t, args...)
	cmd = exec.Command(like.Path, args...) // the test stops it; its context would kill it
	cmd.Env, cmd.Stderr = append(like.Env, "TMPDIR="+temp), new(bytes.Buffer)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	for !strings.Contains(printed, "control socket: ") {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("output ended with %q: %v", printed, err)
		}
		printed += line
	}
	return cmd, printed, lines
}

func TestExitCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"0", "7"} {
		cmd := simulator(t, "--clusters", "1", "--quiet", "--", "sh", "-c", "exit "+code)
		var stdout bytes.Buffer
		cmd.Stdout = &stdout
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != int(code[0]-'0') {
			t.Errorf("exit code %d, the command's was %s", got, code)
		}
		if stdout.Len() > 0 {
			t.Errorf("quiet, but printed %q", stdout.String())
		}
	}
}

// TestTheLogOfTheCommand: the output of the command goes to the file, and the end of it is shown when the command
// fails.
func TestTheLogOfTheCommand(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"0", "7"} {
		file := filepath.Join(t.TempDir(), "log")
		cmd := simulator(t, "--clusters", "1", "--quiet", "--command-log", file, "--", "sh", "-c", "echo out; echo error >&2; exit "+code)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		text, err := os.ReadFile(file)
		must(t, err)
		if string(text) != "out\nerror\n" || stdout.Len() > 0 || strings.HasPrefix(stderr.String(), "out\nerror\n") != (code != "0") {
			t.Errorf("exit %s: the log is %q, stdout %q, stderr %q", code, text, stdout.String(), stderr.String())
		}
	}
}

// ctl runs a ctl command of a simulator that uses this temporary directory.
func ctl(t *testing.T, temp string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := simulator(t, append([]string{"ctl"}, args...)...)
	cmd.Env = append(append(cmd.Env, "TMPDIR="+temp), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code has the result
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// startSimulator runs a simulator until the end of the test and returns what it
// printed until it was ready.
func startSimulator(t *testing.T, temp string, args ...string) string {
	t.Helper()
	cmd, output, rest := start(t, temp, args...)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, rest)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return output
}

func TestControlFromTheCommandLine(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	temp, err := os.MkdirTemp("", "sim") // short, as the path of a socket has a limit
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	if _, errs, code := ctl(t, temp, nil, "list"); code != 2 || !strings.Contains(errs, "start mesh-sim") {
		t.Errorf("without a simulator: exit %d, %s", code, errs)
	}
	printed := startSimulator(t, temp, "--clusters", "3", "--cached", "2", "--local", "home")
	for _, want := range []string{"local cluster: home, id 4, client file " + temp, "control socket: " + temp} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in:\n%s", want, printed)
		}
	}
	for _, tc := range []struct {
		args           []string
		stdout, stderr string
		code           int
	}{
		{[]string{"list"}, "CLUSTER ", "", 0},
		{[]string{"kill", "cluster1"}, "cluster1: killed\n", "", 0},
		{[]string{"kill", "cluster1"}, "", "mesh-sim: the server of cluster cluster1 is killed already\n", 1},
		{[]string{"kill", "cluster9"}, "", "there are cluster1, cluster2, cluster3, home", 1},
		{[]string{"start", "cluster1", "-o", "json"}, `"state": "running"`, "", 0},
		{[]string{"freeze", "cluster1", "--for", "soon"}, "", "must be a duration", 2},
		{[]string{"config", "cluster1", "--capability", "cached=true", "--capability", "syncedCanaries=false"}, "cluster1: configuration changed", "", 0},
		{[]string{"put", "home", "k", "-"}, "home: wrote k", "", 0},
		{[]string{"list"}, "local, 1 keys changed", "", 0},
	} {
		out, errs, code := ctl(t, temp, nil, tc.args...)
		if code != tc.code || !strings.Contains(out, tc.stdout) || !strings.Contains(errs, tc.stderr) || (errs == "") != (tc.code == 0) {
			t.Errorf("%v: exit %d, %q, %q", tc.args, code, out, errs)
		}
	}
	socket := temp + "/other.sock"
	startSimulator(t, temp, "--clusters", "1", "--prefix", "other", "--ctl-socket", socket)
	for what, get := range map[string]func() (string, string, int){
		"flag":        func() (string, string, int) { return ctl(t, temp, nil, "list", "--socket", socket) },
		"environment": func() (string, string, int) { return ctl(t, temp, []string{"MESH_SIM_SOCKET=" + socket}, "list") },
	} {
		if out, errs, code := get(); code != 0 || !strings.Contains(out, "other1") {
			t.Errorf("by %s: exit %d, %q, %q", what, code, out, errs)
		}
	}
	startSimulator(t, temp, "--clusters", "1", "--prefix", "third")
	if _, errs, code := ctl(t, temp, nil, "list"); code != 2 || strings.Count(errs, "ctl.sock") != 2 {
		t.Errorf("with two simulators: exit %d, %s", code, errs)
	}
}

func TestCommandFindsItsSimulator(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	script := `test -S "$1" && test "$1" = "$MESH_SIM_SOCKET" && test -f "$2" && "$0" ctl kill cluster1 && "$0" ctl list`
	cmd := simulator(t, "--clusters", "1", "--quiet", "--local", "home", "--", "sh", "-c", script, self, "{ctl}", "{local}")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "killed") {
		t.Errorf("%v: %s", err, out)
	}
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
