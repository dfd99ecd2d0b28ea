package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

const mib = 1 << 20

// memoryLimit is the total memory limit of the process.
const memoryLimit = 256 * mib

// agent is a mesh-agent with all its servers, in a process of its own.
type agent struct {
	tb             testing.TB
	cmd            *exec.Cmd
	socket         string
	api, dns, xds  string // addresses
	logFile        string
	limitedBy      string
	ended          chan struct{}
	err            error // after ended
	mu             sync.Mutex
	first, current int64  // guarded by mu; bytes resident when it was ready, and now
	most           int64  // guarded by mu
	wrong          string // guarded by mu; the first problem
}

// startAgent runs the program on a mesh directory until the end of the test.
func startAgent(tb testing.TB, dir string, flags ...string) *agent {
	tb.Helper()
	temp, err := os.MkdirTemp("", "servers-") // short enough for a socket
	must(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(temp) })
	a := &agent{
		tb: tb, socket: filepath.Join(temp, "agent.sock"), logFile: filepath.Join(temp, "log"), ended: make(chan struct{}),
		api: programtest.Reserve(tb), dns: programtest.Reserve(tb), xds: programtest.Reserve(tb),
	}
	log, err := os.Create(a.logFile)
	must(tb, err)
	defer log.Close()
	args := append([]string{
		theProgram(tb), "run", "--cluster-name", "own", "--cluster-id", "250", "--clustermesh-config", dir, "--socket", a.socket, "--listen", a.api,
		"--dns", a.dns, "--dns-mesh-zone", "mesh.example", "--xds", a.xds, "--log-format", "json",
	}, flags...)
	group := memoryGroup(tb)
	if group == "" {
		a.limitedBy = "GOMEMLIMIT, and killed beyond"
		a.cmd = exec.Command(args[0], args[1:]...)
	} else { // the program begins inside of it
		a.limitedBy = "cgroup " + group
		a.cmd = exec.Command("sh", append([]string{"-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, group}, args...)...)
	}
	a.cmd.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", memoryLimit*9/10))
	a.cmd.Stderr = log
	must(tb, a.cmd.Start())
	go func() { a.err = a.cmd.Wait(); close(a.ended) }()
	tb.Cleanup(a.stop)
	return a
}

// memoryGroup makes a cgroup with the limit, if that is possible; otherwise its name is empty.
func memoryGroup(tb testing.TB) string {
	name := fmt.Sprint("servers-", os.Getpid(), "-", time.Now().UnixNano())
	for _, v := range []struct{ root, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		group := filepath.Join(v.root, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		remove := func() { _ = os.Remove(group) } // it has no processes
		if os.WriteFile(filepath.Join(group, v.limit), fmt.Append(nil, memoryLimit), 0o600) != nil {
			remove()
			continue
		}
		tb.Cleanup(remove)
		return group
	}
	return ""
}

// stop ends the process as Kubernetes does, and reports its problems.
func (a *agent) stop() {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-a.ended:
	case <-time.After(time.Minute):
		_ = a.cmd.Process.Kill()
		<-a.ended
		a.tb.Error("the agent does not end")
	}
	a.tb.Logf("memory: %d MiB resident when it was ready, %d MiB at the most, %d MiB in the end; the limit is %d MiB (%s)",
		a.first/mib, a.most/mib, a.current/mib, memoryLimit/mib, a.limitedBy)
	if a.wrong != "" {
		a.tb.Errorf("the agent: %s\n%s", a.wrong, a.failure())
	}
}

// failure is the part of the log with the reason for the end of the process.
func (a *agent) failure() string {
	text, err := os.ReadFile(a.logFile)
	if err != nil {
		return err.Error()
	}
	for _, begin := range []string{"\npanic:", "\nfatal error:", "\nSIGSEGV"} {
		if i := strings.Index(string(text), begin); i >= 0 {
			return fmt.Sprintf("%.2000s", text[i:])
		}
	}
	return string(text[max(0, len(text)-2000):])
}

// internalError is the first one in the log.
func (a *agent) internalError() string {
	text, err := os.ReadFile(a.logFile)
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, string(codes.WorkFailed)) {
			return fmt.Sprintf("%.3000s", line)
		}
	}
	return "the log has none"
}

// look measures the memory once. The cgroup ends the process at the limit; without one, this function does.
func (a *agent) look() {
	now := resident(a.cmd.Process.Pid)
	if now == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.most = now, max(a.most, now)
	if now > memoryLimit && a.wrong == "" {
		a.wrong = fmt.Sprintf("%d MiB resident, there may be %d", now/mib, memoryLimit/mib)
		_ = a.cmd.Process.Kill() // to protect other processes of the machine
	}
}

// alive reports whether it still runs; its end is noted as a problem.
func (a *agent) alive() bool {
	select {
	case <-a.ended:
		a.fails(fmt.Sprintf("it has ended: %v", a.err))
		return false
	default:
		return true
	}
}

func (a *agent) fails(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrong == "" {
		a.wrong = text
	}
}

// resident is the memory of a process in bytes, without the pages of its file, which the kernel drops when it needs
// room; 0 when it is gone.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	var kib int64
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}
