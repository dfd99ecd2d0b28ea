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
	"time"
)

// asProgram makes the test binary be mesh-sim itself.
const asProgram = "MESH_SIM_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

func TestBadFlagsExitWithTwoAndOneLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, args...)
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
			cmd := program(t, args...)
			temp := t.TempDir()
			cmd.Env = append(cmd.Env, "TMPDIR="+temp)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			rest := waitReady(t, stdout, base+"/mesh")
			begin := time.Now()
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, rest)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, stderr.String())
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("ending took %s", took)
			}
			for _, dir := range []string{base, temp} {
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("left over in %s: %v", dir, left)
				}
			}
		})
	}
}

// waitReady reads until everything is ready.
func waitReady(t *testing.T, stdout io.Reader, dir string) io.Reader {
	t.Helper()
	lines := bufio.NewReader(stdout)
	clusters := 0
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("output ended before it was ready: %v", err)
		}
		if strings.HasPrefix(line, "cluster") {
			clusters++
		}
		if strings.HasPrefix(line, "ready: ") {
			if clusters != 3 || !strings.Contains(line, dir) {
				t.Errorf("%d clusters, then %q", clusters, line)
			}
			return lines
		}
	}
}

func TestExitCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"0", "7"} {
		cmd := program(t, "--clusters", "1", "--quiet", "--", "sh", "-c", "exit "+code)
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
