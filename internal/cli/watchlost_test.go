package cli_test

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
)

// TestAWatchOutlivesItsAgent: the watch reports the loss of the agent once, and continues with the next agent at the
// same address.
func TestAWatchOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	serve := func(id uint32) *http.Server {
		t.Helper()
		to, err := url.Parse(clitest.NewAgent(t, clitest.Well("c2", id)).Server)
		agenttest.Must(t, err)
		l, err := net.Listen("unix", socket)
		agenttest.Must(t, err)
		s := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}}
		go func() { _ = s.Serve(l) }() // until it is closed
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	first := serve(2)
	w := startCommand(t, "status", "c2", "-w", "--interval", "100ms", "-o", "json", "--socket", socket)
	shows := func(part string) {
		t.Helper()
		for w.out.Scan() {
			if strings.Contains(w.out.Text(), part) {
				return
			}
		}
		t.Fatalf("it ended without %s", part)
	}
	shows(`"id": 2,`)
	agenttest.Must(t, first.Close())
	w.says("Lost the agent, waiting until it answers: ")
	serve(22)
	shows(`"id": 22,`)
	agenttest.Must(t, w.cmd.Process.Signal(syscall.SIGINT))
	for w.out.Scan() { // to the end of its output
	}
	if w.err.Scan() {
		t.Errorf("it also said %s", w.err.Text())
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
