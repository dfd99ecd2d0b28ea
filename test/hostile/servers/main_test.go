package servers

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var (
	steps    = flag.Int("servers.steps", 3000, "how many messages an attacker of one server sends")
	atOnce   = flag.Int("servers.clients", max(2, runtime.GOMAXPROCS(0)/2), "how many clients an attacker has at once: more for many steps, as most of them wait most of the time")
	seed     = flag.Uint64("servers.seed", 1, "of what the attackers send")
	duration = flag.Duration("servers.time", 15*time.Second, "how long all attacks at once last")
	each     = flag.Duration("servers.each", 0, "how long each attack lasts by itself; 0: they are skipped")
	program  = flag.String("servers.program", "", "the mesh-agent to attack; default: that of the sources")
	ratio    = flag.Float64("servers.ratio", 2, "how many times as long friendly clients may wait")
)

var must = waittest.Must

// built is the directory of the program, which all tests share.
var built struct {
	sync.Mutex
	dir string // guarded by the mutex
}

func TestMain(m *testing.M) {
	flag.Parse()
	etcdtest.Main(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(built.dir)
		os.Exit(code)
	}))
}

// theProgram builds the program once.
func theProgram(tb testing.TB) string {
	tb.Helper()
	if *program != "" {
		return *program
	}
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "servers-")
		must(tb, err)
		built.dir = dir
		buildtest.Released(tb, "build", "-o", filepath.Join(dir, "mesh-agent"), "github.com/mesh-agent/mesh-agent/cmd/mesh-agent")
	}
	return filepath.Join(built.dir, "mesh-agent")
}
