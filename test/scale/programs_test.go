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
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/internal/sim"
	"github.com/mesh-agent/mesh-agent/internal/sim/contents"
)

// The test binary is one of the other processes when it has a role, and
// then argument says on what.
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
	var err error
	switch name := os.Getenv(role); name {
	case "clusters":
		err = serveClusters(ctx)
	case "floor":
		err = runFloor(ctx, os.Getenv(argument))
	case "etcd":
		err = serveEtcd(os.Getenv(argument))
	case "target":
		err = serveTarget(ctx)
	case "copy":
		err = runCopy(ctx, os.Getenv(argument))
	case "late":
		err = runLate(ctx, os.Getenv(argument))
	default:
		err = fmt.Errorf("%s=%s is no role", role, name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// programs are the agent, and this test binary, built as they are released: what
// is measured must not have the race detector in it.
type programs struct{ agent, scale string }

func build(tb testing.TB) programs {
	tb.Helper()
	dir := tb.TempDir()
	p := programs{agent: filepath.Join(dir, "mesh-agent"), scale: filepath.Join(dir, "scale.test")}
	released := []string{"-trimpath", "-ldflags", "-s -w"} // as in the Makefile, so that it is in the cache
	for _, args := range [][]string{
		append(append([]string{"build"}, released...), "-o", p.agent, "../../cmd/mesh-agent"),
		append(append([]string{"test"}, released...), "-c", "-o", p.scale, "."),
	} {
		cmd := exec.CommandContext(tb.Context(), "go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return p
}

// as is the command that runs this test binary in a role.
func (p programs) as(name, arg string) *exec.Cmd {
	cmd := exec.Command(p.scale)
	cmd.Env = append(os.Environ(), role+"="+name, argument+"="+arg)
	cmd.Stderr = os.Stderr
	return cmd
}

// served is what the process of the simulated clusters gets.
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

// churning are clusters with so many changes a second, in all of them together.
func (p programs) churning(tb testing.TB, s scenario, changes float64) (dir string) {
	tb.Helper()
	text, err := json.Marshal(served{s.descriptions(), changes / float64(s.clusters)})
	if err != nil {
		tb.Fatal(err)
	}
	cmd := p.as("clusters", string(text))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if !ok {
		tb.Fatalf("the clusters said %q: %v", line, err)
	}
	return dir
}

// serveClusters is that process. It ends with its standard input, at the latest
// when the test is gone.
func serveClusters(ctx context.Context) error {
	var what served
	if err := json.Unmarshal([]byte(os.Getenv(argument)), &what); err != nil {
		return err
	}
	m, err := sim.OpenMesh(ctx, what.Clusters, sim.MeshOptions{Churn: what.Churn})
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
