package agent_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
)

// TestGRPCDoesNotLog: a remote that ends every connection with a complaint puts nothing
// on stderr beside our log.
func TestGRPCDoesNotLog(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	agenttest.Must(t, err)
	var met atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			met.Add(1)
			f := http2.NewFramer(c, nil)
			_ = f.WriteSettings()
			_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
			defer c.Close() // the client ends it
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	dir := t.TempDir()
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "c1"), fmt.Appendf(nil, "endpoints:\n- http://%s\n", l.Addr()), 0o600))
	a := agenttest.StartAgent(t, dir)
	a.Until("the agent to try again and again", func() bool { return met.Load() > 3 })
	a.Stop()
	if log := a.Log.String(); strings.Contains(log, "[transport]") || !strings.Contains(log, "level=") && !strings.Contains(log, `"level":`) {
		t.Errorf("gRPC has logged, or we have not:\n%.2000s", log)
	}
}
