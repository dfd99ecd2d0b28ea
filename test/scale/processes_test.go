package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/sim"
)

// role is the environment variable that makes the test binary one of the
// measured processes.
const role = "MESH_SCALE_ROLE"

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch name := os.Getenv(role); name {
	case "":
		os.Exit(m.Run())
	case "clusters":
		err = serveClusters(ctx)
	case "agent":
		err = measure(ctx, runAgent)
	case "floor":
		err = measure(ctx, runFloor)
	default:
		err = fmt.Errorf("%s=%s is no role", role, name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scenario is what the simulated clusters hold.
type scenario struct {
	Clusters int
	Each     sim.Cluster
}

func (s scenario) keys() int { return s.Clusters * s.Each.Keys() }

// scenarioM is the reference: 8 clusters, 464,000 keys.
func scenarioM() scenario {
	c := sim.Default("cluster", 1)
	c.Nodes, c.Services, c.Backends, c.Identities, c.Addresses = 1000, 2000, 10, 5000, 50_000
	c.EndpointSlices, c.ServiceExports = false, false
	return scenario{Clusters: 8, Each: c}
}

// serveClusters runs the scenario's clusters until standard input ends, and
// prints the directory of their client files.
func serveClusters(ctx context.Context) error {
	var s scenario
	if err := json.Unmarshal([]byte(os.Getenv("MESH_SCALE_SCENARIO")), &s); err != nil {
		return err
	}
	var clusters []sim.Cluster
	for i := range s.Clusters {
		c := s.Each
		c.Name, c.ID = fmt.Sprint("cluster", i+1), uint32(i+1)
		clusters = append(clusters, c)
	}
	m, err := sim.OpenMesh(ctx, clusters, sim.MeshOptions{})
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Load(ctx, func(*sim.Running, sim.Loaded) {}); err != nil {
		return err
	}
	fmt.Println("ready", m.Dir())
	ctx, cancel := context.WithCancel(ctx)
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	return m.Run(ctx)
}

// startClusters starts that process and returns the directory.
func startClusters(b *testing.B, s scenario) (dir string) {
	b.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	cmd := self("clusters", "MESH_SCALE_SCENARIO="+string(text))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ok {
		b.Fatalf("the clusters said %q: %v", line, err)
	}
	return dir
}

func self(name string, env ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err) // there is always one
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), role+"="+name), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// result is what a measured process tells of itself.
type result struct {
	Seconds  float64 // from start to everything read
	CPU      float64 // seconds of all cores
	Keys     int
	Heap     float64 // live bytes more than before, everything still in use
	PeakRSS  float64 // bytes, of the whole process
	Prefixes int     // in the merged view
}

// measure runs one of the roles on the directory and prints the result.
func measure(ctx context.Context, f func(ctx context.Context, dir string, keys int) (any, result, error)) error {
	keys, err := strconv.Atoi(os.Getenv("MESH_SCALE_KEYS"))
	if err != nil {
		return err
	}
	before := liveHeap()
	cpu, start := cpuSeconds(), time.Now()
	held, r, err := f(ctx, os.Getenv("MESH_SCALE_DIR"), keys)
	if err != nil {
		return err
	}
	r.Seconds, r.CPU = time.Since(start).Seconds(), cpuSeconds()-cpu
	r.PeakRSS = peakRSS()
	r.Heap = float64(liveHeap()) - float64(before)
	runtime.KeepAlive(held)
	return json.NewEncoder(os.Stdout).Encode(r)
}

// run measures in a new process.
func run(b *testing.B, name, dir string, keys int) (r result) {
	b.Helper()
	out, err := self(name, "MESH_SCALE_DIR="+dir, fmt.Sprint("MESH_SCALE_KEYS=", keys)).Output()
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		b.Fatalf("%s said %q: %v", name, out, err)
	}
	return r
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot fail for oneself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func peakRSS() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot fail for oneself
	}
	return float64(u.Maxrss) * 1024
}
