package clustermesh

import (
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// counter is a TCP proxy that counts connections.
type counter struct {
	listener net.Listener
	to       string

	mu          sync.Mutex
	open, total int
}

func startCounter(t *testing.T, to string) *counter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &counter{listener: l, to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.pipe(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait() // the mesh has stopped, so its connections are closed
	})
	return c
}

func (c *counter) endpoint() string { return "http://" + c.listener.Addr().String() }

func (c *counter) note(open, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += open
	c.total += total
}

func (c *counter) counts() (open, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.total
}

func (c *counter) pipe(in net.Conn) {
	defer in.Close()
	c.note(1, 1)
	defer c.note(-1, 0)
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
	<-done
}

func TestTwentyCachedClustersOnOneConnection(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	const n = 20
	etcd := etcdtest.StartProcess(t)
	proxy := startCounter(t, etcd.Endpoint()[len("http://"):])
	w := newWorld(t)
	kv := etcd.Client(t)
	all := make([]*remote, n)
	for i := range n {
		r := &remote{w: w, name: fmt.Sprint("c", i+1), id: uint32(i + 1), cached: true, etcd: etcd, kv: kv}
		r.fill(0, 10)
		all[i] = r
		write(t, filepath.Join(w.dir, r.name), "endpoints:\n- "+proxy.endpoint()+"\n")
	}
	everybody := func(s remotecluster.State) {
		t.Helper()
		for _, r := range all {
			w.inState(r.name, s)
		}
	}
	everybody(remotecluster.Ready)
	for _, r := range all {
		r.converges()
	}
	if open, total := proxy.counts(); open != 1 || total != 1 {
		t.Errorf("%d connections are open and %d were made for %d clusters, want one", open, total, n)
	}
	if sessions, users, opened := w.mesh.pool.counts(); sessions != 1 || users != n || opened != 1 {
		t.Errorf("%d sessions with %d clusters, %d opened", sessions, users, opened)
	}
	w.quiet()
	before := make([]map[any]any, n)
	for i, r := range all {
		before[i] = r.fingerprint()
	}
	unnoticed := func(of []*remote, what string) {
		t.Helper()
		for i, r := range of {
			if !maps.Equal(before[i], r.fingerprint()) {
				t.Errorf("%s caused events of %s", what, r.name)
			}
		}
	}

	etcd.Kill(t)
	for _, r := range all {
		w.until(r.name+" to be cut off", func() bool { st, _ := w.status(r.name); return !st.Connected && st.State == remotecluster.Degraded })
	}
	unnoticed(all, "the death of etcd")
	etcd.Restart(t)
	everybody(remotecluster.Ready)
	unnoticed(all, "the restart of etcd")
	for _, r := range all {
		r.object(3, 2)
	}
	for _, r := range all {
		r.converges()
	}
	w.until("one connection again", func() bool { open, _ := proxy.counts(); return open == 1 })

	// One cluster is removed: the others keep their session.
	w.quiet()
	_, total := proxy.counts()
	failures := map[string]int{}
	for i, r := range all {
		before[i] = r.fingerprint()
		st, _ := w.status(r.name)
		failures[r.name] = st.Failures
	}
	last := all[n-1]
	must(t, os.Remove(filepath.Join(w.dir, last.name)))
	w.gone(last.name)
	if left := last.inView(); len(left) != 0 {
		t.Errorf("%d objects are left of it", len(left))
	}
	unnoticed(all[:n-1], "the removal of another cluster")
	for _, r := range all[:n-1] {
		if st, _ := w.status(r.name); st.State != remotecluster.Ready || st.Failures != failures[r.name] {
			t.Errorf("%s is %s with %d failures, %d before: %s", r.name, st.State, st.Failures, failures[r.name], st.Message)
		}
	}
	if open, now := proxy.counts(); open != 1 || now != total {
		t.Errorf("%d connections are open, %d more were made", open, now-total)
	}
	for _, r := range all[:n-1] {
		must(t, os.Remove(filepath.Join(w.dir, r.name)))
	}
	w.until("the connection to be closed with its last user", func() bool { open, _ := proxy.counts(); return open == 0 })
	w.until("all to be forgotten", func() bool { return len(w.mesh.Clusters()) == 0 })
	w.mesh.pool.mu.Lock()
	defer w.mesh.pool.mu.Unlock()
	if len(w.mesh.pool.places) != 0 || len(w.mesh.pool.of) != 0 {
		t.Errorf("the pool remembers %d configurations of %d clusters", len(w.mesh.pool.places), len(w.mesh.pool.of))
	}
}
