package xdsserver_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const (
	benchSocket = "XDS_BENCHMARK_SOCKET" // set for the process that runs the clients of the benchmark

	benchServices = 2000
	benchBackends = 10
	benchStreams  = 1000 // each on a connection of its own
	benchNames    = 20   // of each stream
	benchChanges  = 1000 // a second
	benchSeconds  = 10
)

// BenchmarkStreams has a thousand clients follow 20 services each while one endpoint of a service changes a thousand
// times a second. It measures how long it takes until a client has acknowledged a change, and what the streams need.
// The clients are in another process.
func BenchmarkStreams(b *testing.B) {
	w := viewtest.New(b)
	for i := range benchServices {
		w.Apply(changed(i, time.Time{}))
	}
	socket := filepath.Join(b.TempDir(), "xds")
	s, err := xdsserver.New(xdsserver.Params{View: w.View, Metrics: xdsserver.NewMetrics()})
	waittest.Must(b, err)
	waittest.Must(b, s.Listen("unix:"+socket))
	ctx, cancel := context.WithCancel(b.Context())
	var servers sync.WaitGroup
	for _, one := range []runner{s, w.View} {
		servers.Go(func() { _ = one.Run(ctx) })
	}
	defer servers.Wait()
	defer cancel()
	for b.Loop() {
		without := heap()
		clients := startClients(b, socket)
		with := heap()
		began, peak := time.Now(), with
		tick := time.NewTicker(time.Second / 100)
		for n := range benchSeconds * 100 {
			<-tick.C
			for range benchChanges / 100 {
				w.Apply(changed(rand.IntN(benchServices), time.Now()))
			}
			if n%100 == 0 {
				peak = max(peak, inUse())
			}
		}
		tick.Stop()
		took := time.Since(began)
		r := clients.end()
		b.ReportMetric(r.Median, "median-ms")
		b.ReportMetric(r.P99, "p99-ms")
		b.ReportMetric(r.Most, "most-ms")
		b.ReportMetric(benchSeconds*benchChanges/took.Seconds(), "changes/s")
		b.ReportMetric(float64(r.Answers)/took.Seconds(), "answers/s")
		b.ReportMetric(float64(r.Resources)/float64(r.Answers), "resources/answer")
		b.ReportMetric(float64(with-without)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(peak-without)/(1<<20), "peak-MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// heap returns the bytes of reachable objects.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	return inUse()
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}

// changed is a service; the address of one of its backends encodes the time of the change.
func changed(i int, at time.Time) *services.Service {
	s := &services.Service{Cluster: "east", ClusterID: 2, Source: wire.SourceClusterMesh, Shared: true, Namespace: "shop", Name: fmt.Sprint("s", i)}
	for n := range benchBackends {
		ip := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(n)})
		if n == 0 && !at.IsZero() {
			var address [16]byte
			address[0] = 0xfd
			binary.BigEndian.PutUint64(address[8:], uint64(at.UnixNano()))
			ip = netip.AddrFrom16(address)
		}
		s.Backends = append(s.Backends, services.Backend{IP: ip, Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}}})
	}
	return s
}

// results are those of all clients.
type results struct {
	Median, P99, Most  float64 // milliseconds from a change until its acknowledgement was sent
	Answers, Resources int
}

// clientProcess is the process of the clients.
type clientProcess struct {
	b   *testing.B
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startClients returns when all clients have the resources that they follow.
func startClients(b *testing.B, socket string) *clientProcess {
	b.Helper()
	p := &clientProcess{b: b, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), benchSocket+"="+socket)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	waittest.Must(b, err)
	out, err := p.cmd.StdoutPipe()
	waittest.Must(b, err)
	p.in, p.out = in, bufio.NewReader(out)
	waittest.Must(b, p.cmd.Start())
	if line, err := p.out.ReadString('\n'); line != "ready\n" {
		b.Fatalf("the clients said %q: %v", line, err)
	}
	return p
}

func (p *clientProcess) end() (r results) {
	p.b.Helper()
	waittest.Must(p.b, p.in.Close())
	waittest.Must(p.b, json.NewDecoder(p.out).Decode(&r))
	waittest.Must(p.b, p.cmd.Wait())
	return r
}

// runClients is the process of the clients: it reports that they are ready, and the results when its input ends.
func runClients(socket string) error {
	debug.SetGCPercent(1000) // a thousand clients in one process: their garbage is not to be measured
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	var r results
	var ready, all sync.WaitGroup
	for range benchStreams {
		conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer conn.Close()
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
		if err != nil {
			return err
		}
		var names []string
		for _, i := range rand.Perm(benchServices)[:benchNames] {
			names = append(names, fmt.Sprintf("shop/s%d:http", i))
		}
		ready.Add(1)
		all.Go(func() {
			isReady := sync.OnceFunc(ready.Done)
			defer isReady()
			_ = follow(stream, names, isReady, func(changes []time.Time) {
				mu.Lock()
				defer mu.Unlock()
				r.Answers++
				r.Resources += len(changes)
				for _, at := range changes {
					took = append(took, time.Since(at))
				}
			}) // it ends with the process
		})
	}
	ready.Wait()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	time.AfterFunc(time.Second, cancel) // wait for changes that were already sent
	all.Wait()
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	r.Median, r.P99, r.Most = ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1])
	return json.NewEncoder(os.Stdout).Encode(r)
}

// follow acknowledges each response, and notes each change.
func follow(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient, names []string, ready func(), note func(changes []time.Time)) error {
	request := &discovery.DiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNames: names}
	for known := make(map[string]bool); ; {
		if err := stream.Send(request); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		request = &discovery.DiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNames: names, VersionInfo: answer.GetVersionInfo(), ResponseNonce: answer.GetNonce()}
		var changes []time.Time
		for _, one := range answer.GetResources() {
			var a endpointv3.ClusterLoadAssignment
			if err := proto.Unmarshal(one.GetValue(), &a); err != nil {
				return err
			}
			known[a.GetClusterName()] = true
			if at := changedAt(&a); !at.IsZero() {
				changes = append(changes, at)
			}
		}
		if len(known) == len(names) {
			ready()
		}
		if len(changes) > 0 {
			note(changes)
		}
	}
}

// changedAt returns when an assignment changed, as encoded in one of its addresses.
func changedAt(a *endpointv3.ClusterLoadAssignment) (at time.Time) {
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			if text := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(); strings.HasPrefix(text, "fd") {
				address := netip.MustParseAddr(text).As16()
				at = time.Unix(0, int64(binary.BigEndian.Uint64(address[8:]))) //nolint:gosec // it was one
			}
		}
	}
	return at
}

// BenchmarkChange is one change of a service that 100 streams follow, among 20 others, until all have acknowledged it.
// It measures processor time of the server and the clients, which does not depend on the load of the machine.
func BenchmarkChange(b *testing.B) {
	w := viewtest.New(b)
	var names []string
	for i := range benchNames {
		w.Apply(changed(i, time.Time{}))
		names = append(names, fmt.Sprintf("shop/s%d:http", i))
	}
	socket := filepath.Join(b.TempDir(), "xds")
	s, err := xdsserver.New(xdsserver.Params{View: w.View, Metrics: xdsserver.NewMetrics()})
	waittest.Must(b, err)
	waittest.Must(b, s.Listen("unix:"+socket))
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for _, one := range []runner{s, w.View} {
		all.Go(func() { _ = one.Run(ctx) })
	}
	defer all.Wait()
	defer cancel()
	ready, seen := make(chan struct{}, 100), make(chan struct{}, 100)
	for range 10 {
		conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		waittest.Must(b, err)
		defer conn.Close()
		for range 10 {
			stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
			waittest.Must(b, err)
			all.Go(func() {
				_ = follow(stream, names, sync.OnceFunc(func() { ready <- struct{}{} }), func([]time.Time) { seen <- struct{}{} })
			})
		}
	}
	for range 100 {
		<-ready
	}
	before, n := processorTime(b), 0
	for b.Loop() {
		w.Apply(changed(n%benchNames, time.Now()))
		for range 100 {
			<-seen
		}
		n++
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(n), "cpu-us/op")
}

// processorTime is the processor time that the process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var of syscall.Rusage
	waittest.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &of))
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}
