package api

import (
	"bufio"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// What idle watchers are measured with.
const (
	idleWatchers = 2000
	idleFew      = 200             // in the tests of every day
	idleOpeners  = 8               // at once
	idleBound    = 60 << 20 / 2000 // for each, heap in use and stacks: 60 MiB for all
)

// inUse is the memory of heap and stacks that is in use when the garbage is gone.
func inUse() uint64 {
	var m runtime.MemStats
	for range 3 { // a stack halves with each collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// watchIdle opens a watch on a connection of its own, reads the state and keeps
// the bare connection.
func watchIdle(t testing.TB, address string, lines *bufio.Reader) net.Conn {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte("GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Error(err)
	}
	lines.Reset(c)
	for synced := 0; synced < len(view.Kinds()); {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Error(err)
			return nil
		}
		if strings.HasPrefix(line, "event: "+WatchSynced) {
			synced++
		}
	}
	return c
}

// TestIdleWatchersNeedLittleMemory is not parallel: it measures the heap, and with
// it also the clients' side of the connections.
func TestIdleWatchersNeedLittleMemory(t *testing.T) {
	watchers := idleWatchers
	if testing.Short() {
		watchers = idleFew
	}
	f, _, _ := served(t)
	f.fill()
	f.fillIPs(300)
	watchIdle(t, f.Address(), bufio.NewReader(nil))
	before := inUse()
	var group sync.WaitGroup
	for range idleOpeners {
		group.Go(func() {
			lines := bufio.NewReader(nil)
			for range watchers / idleOpeners {
				watchIdle(t, f.Address(), lines)
			}
		})
	}
	group.Wait()
	after := inUse()
	if t.Failed() {
		return
	}
	growth := int64(after) - int64(before)
	t.Logf("%d idle watchers: %d KiB, %d bytes each", watchers, growth>>10, growth/int64(watchers))
	if growth > int64(watchers)*idleBound {
		t.Errorf("%d idle watchers cost %d KiB, at most %d are allowed", watchers, growth>>10, watchers*idleBound>>10)
	}
}
