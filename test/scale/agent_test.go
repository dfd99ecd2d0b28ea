package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
)

// readyPoll is how often the agent is asked whether it is ready. Asking more
// often would cost an agent of hundreds of clusters a part of its time.
const readyPoll = 20 * time.Millisecond

// patience is the maximum duration of a run; a longer one means a defect.
const patience = 5 * time.Minute

// process is a running mesh-agent.
type process struct {
	cmd    *exec.Cmd
	socket string
	client *http.Client
	began  time.Time
}

// run measures one run of the agent on the directory.
func (p programs) run(tb testing.TB, dir string) result {
	tb.Helper()
	a, end := p.start(tb, "run", "--clustermesh-config", dir, "--clustermesh-sync-timeout", "1h")
	defer end()
	r, err := a.measure(tb.Context(), a.began)
	if err != nil {
		tb.Fatalf("the agent: %v", err)
	}
	return r
}

// start starts mesh-agent in a mode; end ends it.
func (p programs) start(tb testing.TB, mode string, flags ...string) (a process, end func()) {
	tb.Helper()
	temp, err := os.MkdirTemp("", "scale-") // short enough for a socket
	must(tb, err)
	socket := filepath.Join(temp, "agent.sock")
	cmd := exec.CommandContext(tb.Context(), p.agent, append([]string{
		mode, "--cluster-name", "own", "--cluster-id", "255",
		"--socket", socket, "--listen", "127.0.0.1:0", "--debug-pprof", "--log-level", "error",
	}, flags...)...)
	cmd.Stderr = os.Stderr
	a = process{cmd: cmd, socket: socket, began: time.Now(), client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
	must(tb, cmd.Start())
	return a, func() {
		a.client.CloseIdleConnections()
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait(), os.RemoveAll(temp)); err != nil {
			tb.Errorf("mesh-agent %s: %v", mode, err)
		}
	}
}

func (a process) measure(ctx context.Context, start time.Time) (r result, err error) {
	if err := a.ready(ctx); err != nil {
		return r, err
	}
	r.Seconds = time.Since(start).Seconds()
	if r.CPU, err = cpuSeconds(a.cmd.Process.Pid); err != nil {
		return r, err
	}
	if r.Keys, err = a.keys(ctx); err != nil {
		return r, err
	}
	if r.Heap, err = a.heap(ctx); err != nil {
		return r, err
	}
	r.Resident, r.Peak, err = resident(a.cmd.Process.Pid)
	return r, err
}

// get sends a request to the agent.
func (a process) get(ctx context.Context, path string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func (a process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		status, body, err := a.get(ctx, "/readyz")
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not ready: %d %s %w", status, body, err)
		}
	}
}

// keys counts the keys that the agent has read.
func (a process) keys(ctx context.Context) (n int, err error) {
	clusters, err := a.clusters(ctx)
	for _, c := range clusters {
		n += keysOf(c)
	}
	return n, err
}

func keysOf(c api.Cluster) int {
	return c.Counts.Nodes + c.Counts.Services + c.Counts.Identities + c.Counts.IPs
}

func (a process) clusters(ctx context.Context) ([]api.Cluster, error) {
	return agentapi.List[api.Cluster](ctx, a.socket, "clusters")
}

// copied waits until this many keys of ready clusters are copied.
func (a process) copied(ctx context.Context, keys int) error {
	for {
		clusters, err := a.clusters(ctx)
		n := 0
		for _, c := range clusters {
			if c.Ready {
				n += keysOf(c)
			}
		}
		if err == nil && n == keys {
			return nil
		}
		if waiting.Sleep(ctx, readyPoll) != nil {
			return fmt.Errorf("%d of %d keys are copied: %w", n, keys, errors.Join(ctx.Err(), err))
		}
	}
}

// heap is the reachable memory of the agent.
func (a process) heap(ctx context.Context) (bytes float64, err error) {
	for range 2 { // pools drop their objects at the second collection
		_, body, err := a.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return 0, err
		}
		_, rest, found := strings.Cut(string(body), "# HeapAlloc = ")
		if _, err := fmt.Sscan(rest, &bytes); !found || err != nil {
			return 0, fmt.Errorf("the profile of the heap has no HeapAlloc: %w", err)
		}
	}
	return bytes, nil
}
