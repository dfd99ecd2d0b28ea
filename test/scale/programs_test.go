package scale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// The test binary is one of the other processes when it has a role; argument is the argument of the role.
const (
	role     = "MESH_SCALE_ROLE"
	argument = "MESH_SCALE_ARGUMENT"
)

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		goleak.VerifyTestMain(m) // which ends the program
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run, known := map[string]func(context.Context, string) error{
		"clusters": serveClusters, "floor": runFloor, "etcd": serveEtcd, "copy": runCopy, "late": runLate,
	}[os.Getenv(role)]
	err := fmt.Errorf("%s=%s is no role", role, os.Getenv(role))
	if known {
		err = run(ctx, os.Getenv(argument))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var must = waittest.Must

// programs are the agent, and this test binary, built as for a release: measurements must be without the race detector.
type programs struct{ agent, scale string }

func build(tb testing.TB) programs {
	tb.Helper()
	p := programs{agent: buildtest.Agent(tb), scale: filepath.Join(tb.TempDir(), "scale.test")}
	buildtest.Released(tb, "test", "-c", "-o", p.scale, ".")
	return p
}

// as is the command that runs this test binary in a role.
func (p programs) as(name, arg string) *exec.Cmd {
	cmd := exec.Command(p.scale)
	cmd.Env = append(os.Environ(), role+"="+name, argument+"="+arg)
	cmd.Stderr = os.Stderr
	return cmd
}

// served is the argument of the process of the simulated clusters.
type served struct {
	Clusters []contents.Cluster
	Churn    float64 // changed keys per second and cluster
}

// clusters runs the simulated clusters until the end of the test, and returns the
// directory of their client files.
func (p programs) clusters(tb testing.TB, s scenario) (dir string) {
	tb.Helper()
	return p.churning(tb, s, 0)
}

// churning runs clusters with this many changes a second, in all of them together.
func (p programs) churning(tb testing.TB, s scenario, changes float64) (dir string) {
	tb.Helper()
	_, words, _ := p.serve(tb, "clusters", served{s.descriptions(), changes / float64(s.clusters)})
	return words[0]
}

// serve starts this test binary in a role that serves until its standard input ends. It waits until the process reports
// that it is ready, and returns the words of that report.
func (p programs) serve(tb testing.TB, name string, arg any) (cmd *exec.Cmd, words []string, stop func()) {
	tb.Helper()
	text, err := json.Marshal(arg)
	must(tb, err)
	cmd = p.as(name, string(text))
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	must(tb, errors.Join(err1, err2, cmd.Start()))
	stop = sync.OnceFunc(func() { _ = stdin.Close(); _ = cmd.Wait() })
	tb.Cleanup(stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	words = strings.Fields(line)
	if len(words) < 2 || words[0] != "ready" {
		tb.Fatalf("the %s said %q: %v", name, line, err)
	}
	return cmd, words[1:], stop
}

// serveClusters is that process. It ends with its standard input, which is at the latest at the end of the test.
func serveClusters(ctx context.Context, arg string) error {
	var what served
	if err := json.Unmarshal([]byte(arg), &what); err != nil {
		return err
	}
	m, err := sim.OpenMesh(ctx, what.Clusters, sim.Options{Churn: what.Churn})
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Load(ctx, nil); err != nil {
		return err
	}
	fmt.Println("ready", m.Dir())
	ctx, cancel := context.WithCancel(ctx)
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	return m.Run(ctx)
}
