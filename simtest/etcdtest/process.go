package etcdtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/ports"
)

const (
	// env is the variable with the configuration that makes a test binary a server.
	env = "ETCDTEST_SERVER"
	// program is the variable that names another program to run as the server; it calls [Serve].
	program = "ETCDTEST_PROGRAM"
)

// Main runs the tests of a package and then looks for leaked goroutines; in the process of a server, it runs that
// server.
func Main(m *testing.M, opts ...goleak.Option) {
	if _, ok := os.LookupEnv(env); ok {
		Serve()
	}
	goleak.VerifyTestMain(m, opts...)
}

// Serve runs the server that [StartProcess] has configured. It does not return.
func Serve() {
	if err := serve(os.Getenv(env)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a server until standard input ends, at the latest with the parent.
func serve(text string) error {
	var cfg etcdserver.Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return fmt.Errorf("%s: %w", env, err)
	}
	s, err := etcdserver.Start(cfg)
	if err != nil {
		return err
	}
	fmt.Printf("ready %s %x %s\n", s.Addr(), s.ClusterID(), s.Config().Token)
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Close()
	return err
}

// Process is an etcd server in a process of its own.
type Process struct {
	access
	settings  settings
	clusterID uint64
	cmd       *exec.Cmd
	stdin     io.Closer
}

// StartProcess runs a server in its own process until the end of the test. The
// package's TestMain must call [Main]; with ETCDTEST_PROGRAM in the environment, the process
// is that program (simtest/etcdtest/server).
func StartProcess(t testing.TB, opts ...Option) *Process {
	t.Helper()
	p := &Process{settings: newSettings(t, opts)}
	p.access = access{p.Endpoint, p.settings.certs}
	port, err := ports.Reserve("127.0.0.1:0") // reserved, also between two processes
	must(t, "reserve a port", err)
	t.Cleanup(port.Release)
	p.settings.cfg.Addr = port.Addr()
	p.start(t)
	t.Cleanup(p.stop)
	return p
}

func (p *Process) start(t testing.TB) {
	t.Helper()
	text, err := json.Marshal(p.settings.cfg)
	must(t, "encode the configuration", err)
	exe := os.Getenv(program)
	if exe == "" {
		exe, err = os.Executable()
		must(t, "find this program", err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), env+"="+string(text))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	stdin, err := cmd.StdinPipe()
	must(t, "connect to the etcd process", err)
	stdout, err := cmd.StdoutPipe()
	must(t, "connect to the etcd process", err)
	must(t, "start the etcd process", cmd.Start())
	giveUp := time.AfterFunc(startTimeout, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if _, err := fmt.Sscanf(line, "ready %s %x %s", &p.settings.cfg.Addr, &p.clusterID, &p.settings.cfg.Token); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the etcd process said %q: %s (does TestMain call etcdtest.Main?)", line, complaint.String())
	}
	p.cmd, p.stdin = cmd, stdin
}

// stop always ends the process, also a frozen one.
func (p *Process) stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.stdin.Close()
	p.cmd = nil
}

// Endpoint returns the URL for clients. It stays the same over restarts.
func (p *Process) Endpoint() string {
	if p.settings.cfg.TLS != nil {
		return "https://" + p.settings.cfg.Addr
	}
	return "http://" + p.settings.cfg.Addr
}

// ClusterID returns the etcd cluster ID of the present server.
func (p *Process) ClusterID() uint64 { return p.clusterID }

// Put writes keys and values, given alternately, and returns the last revision.
func (p *Process) Put(t testing.TB, kvs ...string) int64 {
	t.Helper()
	return put(t, p.Client(t), kvs)
}

// Kill ends the process with SIGKILL and waits for it. Connections are reset,
// the port is free, the data stays.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if p.cmd == nil {
		t.Fatal("kill: the etcd process is not running")
	}
	p.stop()
}

// Freeze stops the process with SIGSTOP: it neither answers nor closes connections. Its threads
// stop a moment after the signal, and Freeze waits for that.
func (p *Process) Freeze(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	limit := time.After(10 * time.Second)
	for p.moves() {
		select {
		case <-limit:
			t.Fatal("the etcd process does not stop")
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *Process) moves() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid)) // the pattern is valid
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		// The state follows the name, which is in parentheses.
		if _, state, found := strings.Cut(string(text), ") "); found && !strings.HasPrefix(state, "T") {
			return true
		}
	}
	return false
}

// Thaw lets a frozen process continue.
func (p *Process) Thaw(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGCONT)
}

func (p *Process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if p.cmd == nil {
		t.Fatalf("%v: the etcd process is not running", s)
	}
	must(t, s.String(), p.cmd.Process.Signal(s))
}

// Restart runs the server again on the same data and the same port, killing it first if it runs.
func (p *Process) Restart(t testing.TB) {
	t.Helper()
	p.stop()
	p.start(t)
}

// RestartEmpty runs a server without data on the same port and with the same token: its etcd cluster ID stays the same,
// its revisions start again.
func (p *Process) RestartEmpty(t testing.TB) {
	t.Helper()
	p.stop()
	p.settings.cfg.DataDir = dataDir(t)
	p.start(t)
}

// Backup stops the server, copies its data into a new directory, which it
// returns, and runs the server again.
func (p *Process) Backup(t testing.TB) string {
	t.Helper()
	p.stop()
	dir := dataDir(t)
	must(t, "back up the etcd process", os.CopyFS(dir, os.DirFS(p.settings.cfg.DataDir)))
	p.start(t)
	return dir
}

// RestartFrom runs a server on the data of a backup, which it takes over, on the same port: its etcd cluster ID stays
// the same, its revisions are lower.
func (p *Process) RestartFrom(t testing.TB, backup string) {
	t.Helper()
	p.stop()
	p.settings.cfg.DataDir = backup
	p.start(t)
}

// RestartAsOther runs a server without data on the same port and with another token: another etcd.
func (p *Process) RestartAsOther(t testing.TB) {
	t.Helper()
	p.settings.cfg.Token = ""
	p.RestartEmpty(t)
}
