package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// herdSize is the number of nodes with a session with the one etcd.
const herdSize = 2000

// herdAbsences is how long the etcd is away: only for a restart; and so long that the watchdogs end the sessions, and
// the pauses reach their maximum.
var herdAbsences = map[string]time.Duration{"restart": 0, "minute": time.Minute}

// BenchmarkHerd restarts an etcd to which 2,000 nodes are connected like agents: with the sessions, pauses and watches
// of the program, over TLS with client certificates. It measures how many handshakes a second the etcd gets, and how
// long it takes until half of the nodes, and all of them, have received a change that was made after the restart.
// Alone: each node behaves as if there were no others.
func BenchmarkHerd(b *testing.B) {
	p := build(b)
	for _, absence := range []string{"restart", "minute"} {
		for name, nodes := range map[string]int{"alone": 1, "stretched": herdSize} {
			b.Run(absence+"/"+name, func(b *testing.B) {
				for b.Loop() {
					h := newHerd(b, p, nodes)
					h.restart(b, herdAbsences[absence])
					h.end()
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// herd is nodes with a session each.
type herd struct {
	etcd   *etcdProcess
	client *clientv3.Client
	end    func()

	mu         sync.Mutex
	handshakes []time.Time    // guarded by mu; when a connection was made
	known      map[string]int // guarded by mu; how many nodes have received a key
	full       chan struct{}  // guarded by mu; has a value when all have received the latest one
	half, all  time.Time      // guarded by mu; when half of them had received it, and all
}

const herdCluster = "own"

// newHerd starts an etcd, and one node after another; each takes the cluster to have this size.
func newHerd(b *testing.B, p programs, size int) *herd {
	b.Helper()
	certs := etcdtest.NewCerts(b)
	h := &herd{etcd: newEtcd(b, p, certs), known: make(map[string]int), full: make(chan struct{}, 1)}
	file := etcdtest.ConfigFile(b, h.etcd.endpoint, certs)
	h.client = h.etcd.connect(b, certs)
	ctx, cancel := context.WithCancel(b.Context())
	var running errgroup.Group
	h.end = sync.OnceFunc(func() {
		cancel()
		_ = running.Wait() // they return no error
		h.etcd.stop()
	})
	b.Cleanup(h.end)
	options := etcd.DefaultOptions()
	options.ClusterSize = func() int { return size }
	options.Dial = h.dial
	for i := range herdSize {
		node := h.node(fmt.Sprint("node", i), options)
		running.Go(func() error { node.Run(ctx, file); return nil })
		must(b, waiting.Sleep(ctx, 5*time.Millisecond))
	}
	h.until(b, "first")
	return h
}

// node reads the own cluster's nodes, as every agent does, and nothing else.
func (h *herd) node(name string, o etcd.Options) *remotecluster.Cluster {
	log := slog.New(slog.DiscardHandler)
	source := store.NewWatch(store.Kind[string]{
		Resource: wire.Nodes,
		Decode: func(wire.Expect) store.Decode[string] {
			return func(_ string, value []byte) (*string, error) { text := string(value); return &text, nil }
		},
		Apply: h.apply,
	}, log)
	return remotecluster.New(remotecluster.Params{
		Name: herdCluster, Origin: remotecluster.OriginLocal, Local: wire.ClusterInfo{Name: herdCluster, ID: 1, MaxConnectedClusters: 255},
		Consumer: only{source}, Timings: remotecluster.DefaultTimings(), Stretch: o.Stretch, Changed: func() {},
		Connect: func(ctx context.Context, cfg *clientfile.Config) (remotecluster.Client, error) {
			return etcd.Connect(ctx, cfg, 0, o)
		},
		Log: log.With("node", name),
	})
}

// only is a consumer of one source.
type only struct{ remotecluster.Family }

func (o only) Families() []remotecluster.Family { return []remotecluster.Family{o.Family} }
func (only) SkipOptional() bool                 { return false }
func (only) Follow(context.Context)             {}
func (only) Withhold(bool)                      {}

// dial notes each new connection: it begins with a handshake.
func (h *herd) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.handshakes = append(h.handshakes, time.Now())
	}
	return conn, err
}

// apply notes the keys that a node has received.
func (h *herd) apply(changes []store.Change[string]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ch := range changes {
		switch h.known[ch.Name]++; h.known[ch.Name] {
		case herdSize / 2:
			h.half = time.Now()
		case herdSize:
			h.all = time.Now()
			h.full <- struct{}{}
		}
	}
}

// until makes a change, and waits until all nodes have received it.
func (h *herd) until(b *testing.B, name string) {
	b.Helper()
	_, err := h.client.Put(b.Context(), wire.Nodes.Prefix(herdCluster, false)+name, "there")
	must(b, err)
	select {
	case <-h.full:
	case <-b.Context().Done():
	}
}

// restart stops the etcd for a while, and reports the results after its return.
func (h *herd) restart(b *testing.B, away time.Duration) {
	b.Helper()
	h.etcd.kill()
	must(b, waiting.Sleep(b.Context(), away))
	h.mu.Lock()
	h.handshakes = nil
	h.mu.Unlock()
	h.etcd.start(b)
	back := time.Now()
	h.until(b, "second")
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.handshakes, time.Time.Compare)
	n := len(h.handshakes)
	b.ReportMetric(float64(n), "handshakes")
	b.ReportMetric(float64(peak(h.handshakes)), "peak/s")
	b.ReportMetric(float64(n)/max(1, h.handshakes[n-1].Sub(h.handshakes[0]).Seconds()), "mean/s")
	b.ReportMetric(h.half.Sub(back).Seconds(), "s-half-synced")
	b.ReportMetric(h.all.Sub(back).Seconds(), "s-all-synced")
}

// peak is the largest number of handshakes within one second.
func peak(sorted []time.Time) (most int) {
	for first, last := 0, 0; last < len(sorted); last++ {
		for sorted[last].Sub(sorted[first]) > time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// etcdProcess is an etcd in a process of its own, which keeps its data and its address.
type etcdProcess struct {
	programs programs
	config   etcdserver.Config
	endpoint string
	cmd      *exec.Cmd
	stop     func()
}

func newEtcd(b *testing.B, p programs, certs *etcdtest.Certs) *etcdProcess {
	b.Helper()
	e := &etcdProcess{programs: p, config: etcdserver.Config{
		DataDir: b.TempDir(),
		TLS:     &etcdserver.TLS{CertFile: certs.ServerCert, KeyFile: certs.ServerKey, CAFile: certs.CAFile, ClientAuth: true},
	}}
	e.start(b)
	return e
}

// start runs the process until it serves.
func (e *etcdProcess) start(b *testing.B) {
	b.Helper()
	cmd, words, stop := e.programs.serve(b, "etcd", e.config)
	e.cmd, e.stop, e.endpoint, e.config.Addr = cmd, stop, words[0], words[1]
}

func (e *etcdProcess) kill() {
	_ = e.cmd.Process.Kill()
	e.stop()
}

// connect opens a client for the benchmark itself.
func (e *etcdProcess) connect(b *testing.B, certs *etcdtest.Certs) *clientv3.Client {
	b.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.endpoint}, TLS: certs.ClientTLS(b, "root"), Context: b.Context()})
	must(b, err)
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// serveEtcd is the process of the etcd. It ends with its standard input.
func serveEtcd(_ context.Context, config string) error {
	var cfg etcdserver.Config
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	s, err := etcdserver.Start(cfg)
	if err != nil {
		return err
	}
	fmt.Println("ready", s.Endpoint(), s.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Close()
	return err
}
