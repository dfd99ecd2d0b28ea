package hostile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// memoryLimit is the total memory limit of an agent in these tests.
const memoryLimit = 512 * mib

// answerBound is the maximum time for the agent's status, on a busy machine.
const answerBound = 15 * time.Second

// agent is a mesh-agent in a process of its own, under a memory limit.
type agent struct {
	tb     testing.TB
	cmd    *exec.Cmd
	socket string
	log    bytes.Buffer // read after the end
	ended  chan struct{}
	err    error // after ended

	mu      sync.Mutex
	most    int64         // guarded by mu; the maximum of resident bytes
	slowest time.Duration // guarded by mu; the slowest answer
	wrong   string        // guarded by mu; the first problem
}

// startAgent runs the program on a mesh directory, until the end of the test. It is watched: it must live, answer, and
// stay within the limit.
func startAgent(tb testing.TB, program, dir string) *agent {
	tb.Helper()
	temp, err := os.MkdirTemp("", "hostile-") // short enough for a socket
	must(tb, err)
	a := &agent{tb: tb, socket: filepath.Join(temp, "agent.sock"), ended: make(chan struct{})}
	a.cmd = exec.Command(program, "run", "--cluster-name", "own", "--cluster-id", "250", "--clustermesh-config", dir,
		"--socket", a.socket, "--listen", "127.0.0.1:0", "--log-level", "error")
	a.cmd.Env = append(os.Environ(), fmt.Sprint("GOMEMLIMIT=", memoryLimit))
	a.cmd.Stderr = &a.log
	must(tb, a.cmd.Start())
	go func() { a.err = a.cmd.Wait(); close(a.ended) }()
	stop, done := make(chan struct{}), make(chan struct{})
	a.until("the agent to answer", func() bool { return a.answers() == nil })
	go func() { defer close(done); a.watch(stop) }()
	tb.Cleanup(func() {
		close(stop)
		<-done
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-a.ended:
		case <-time.After(*patience):
			_ = a.cmd.Process.Kill()
			<-a.ended
			tb.Error("the agent does not end")
		}
		_ = os.RemoveAll(temp)
		tb.Logf("%d MiB resident at the most, the slowest answer took %s", a.most/mib, a.slowest)
		if a.wrong != "" {
			tb.Errorf("the agent: %s\n%.2000s", a.wrong, a.log.String())
		}
	})
	return a
}

// watch checks the agent's memory all the time, and its answers.
func (a *agent) watch(stop <-chan struct{}) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		a.each(stop, 10*time.Millisecond, func() {
			now := resident(a.cmd.Process.Pid, "VmHWM")
			a.mu.Lock()
			a.most = max(a.most, now)
			a.mu.Unlock()
			if now > memoryLimit {
				a.fails(fmt.Sprintf("%d MiB resident, there may be %d", now/mib, memoryLimit/mib))
				_ = a.cmd.Process.Kill() // to protect other processes of the machine
			}
		})
	})
	a.each(stop, 100*time.Millisecond, func() {
		began := time.Now()
		if err := a.answers(); err != nil {
			a.fails(fmt.Sprintf("no answer: %v", err))
		}
		a.mu.Lock()
		a.slowest = max(a.slowest, time.Since(began))
		a.mu.Unlock()
	})
}

// each calls f at intervals until the agent or the test ends.
func (a *agent) each(stop <-chan struct{}, every time.Duration, f func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f()
		case <-stop:
			return
		case <-a.ended:
			a.fails(fmt.Sprintf("it has ended: %v", a.err))
			return
		}
	}
}

func (a *agent) fails(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrong == "" {
		a.wrong = text
	}
}

func (a *agent) failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrong != ""
}

// answers returns an error if the agent does not return its status.
func (a *agent) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), answerBound)
	defer cancel()
	_, err := agentapi.Get[api.Status](ctx, a.socket, "status")
	return err
}

// clusters returns the clusters that the agent reports.
func (a *agent) clusters() map[string]api.Cluster {
	ctx, cancel := context.WithTimeout(context.Background(), answerBound)
	defer cancel()
	list, _ := agentapi.List[api.Cluster](ctx, a.socket, "clusters") // the caller asks again
	all := make(map[string]api.Cluster)
	for _, c := range list {
		all[c.Name] = c
	}
	return all
}

// until waits for a condition, or for a problem.
func (a *agent) until(what string, ok func() bool) {
	a.tb.Helper()
	waittest.Until(a.tb, what, func() bool {
		select {
		case <-a.ended:
			a.tb.Fatalf("the agent ended (%v) before %s\n%.2000s", a.err, what, a.log.String())
		default:
		}
		return ok()
	}, func() string { return fmt.Sprintf("%+v", a.clusters()) })
}

// ready waits until a cluster is ready with at least this many nodes.
func (a *agent) ready(c *cluster, nodes int) {
	a.tb.Helper()
	a.until(c.name+" to be ready", func() bool {
		is := a.clusters()[c.name]
		return is.State == "ready" && is.Counts.Nodes >= nodes
	})
}

// resident is a memory value of a process in bytes, 0 when it is gone.
func resident(pid int, figure string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), figure+":")
	var kib int64
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}

// TestLimit: an agent with 512 MiB, two honest clusters, and a hostile one that tries to use all of the memory. The
// agent lives, answers, stays within its limit, and the honest clusters are followed. Several of these agents run at
// once.
func TestLimit(t *testing.T) {
	waittest.Long(t)
	program := buildtest.Agent(t)
	w := &remotes{tb: t, dir: t.TempDir()}
	c1, e1 := w.honestCluster("c1", 1)
	c2, e2 := w.honestCluster("c2", 2)
	nodes := 60
	var mu sync.Mutex // guards nodes
	change := func() int {
		mu.Lock()
		defer mu.Unlock()
		nodes++
		c1.show(nodes-1, 1)
		c2.show(nodes-1, 1)
		return nodes
	}
	for group := range slices.Chunk(bombs(), 4) {
		t.Run("group", func(t *testing.T) {
			for _, b := range group {
				t.Run(b.name, func(t *testing.T) {
					t.Parallel()
					w := &remotes{tb: t, dir: t.TempDir()}
					w.join(c1, e1)
					w.join(c2, e2)
					a := startAgent(t, program, w.dir)
					a.ready(c1, 60)
					a.ready(c2, 60)
					h, s := w.hostileCluster(t)
					b.fill(h, s)
					s.breaks(b.rule)
					w.join(h, s.endpoint())
					b.lasts(t, a, h, s)
					now := change()
					if !a.failed() {
						a.ready(c1, now)
						a.ready(c2, now)
					}
				})
			}
		})
	}
}
