// Command replay runs plans of the simulation so that a run can be repeated: the same seed, plan and schedule give the
// same journal, byte for byte. The simulation is compiled for WebAssembly, where one thread runs all goroutines, and its
// clock and its random numbers, with which Go orders goroutines, cases of select and keys of maps, come from here.
//
//	go run ./simtest/simulate/replay -seed 7 -hours 0.5 [-plan plan.txt] [-schedule 3] [-schedules 20] [-times 2]
//
// A failure that depends on the order of goroutines may need another schedule than the one in which it was found:
// -schedules tries some, one after another.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// options are the flags.
type options struct {
	seed, schedule   uint64
	hours            float64
	mesh             string
	plan, journal    string
	seeds            int
	schedules, times int
	verbose          bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of the plan")
	flag.IntVar(&o.seeds, "seeds", 1, "number of seeds, of which this is the first")
	flag.Float64Var(&o.hours, "hours", 0.2, "simulated hours")
	flag.StringVar(&o.mesh, "mesh", "3x10x20x100/5s", "the size of the mesh, as -simulate.mesh")
	flag.StringVar(&o.plan, "plan", "", "file with the plan; empty: made from the seed")
	flag.StringVar(&o.journal, "journal", "", "file for the journal of the last run")
	flag.Uint64Var(&o.schedule, "schedule", 1, "the first schedule: the seed of the order of goroutines")
	flag.IntVar(&o.schedules, "schedules", 1, "number of schedules; the first one that fails is the last one")
	flag.IntVar(&o.times, "times", 1, "how often each schedule is run; the journals must be equal")
	flag.BoolVar(&o.verbose, "v", false, "show the logs of the agents")
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := load(ctx, dir)
	if err != nil {
		return err
	}
	defer p.runtime.Close(ctx)
	for range o.seeds {
		if err := o.replay(ctx, p); err != nil {
			return err
		}
		o.seed++
	}
	return nil
}

// replay runs the schedules of one seed.
func (o options) replay(ctx context.Context, p *program) error {
	for schedule := o.schedule; schedule < o.schedule+uint64(o.schedules); schedule++ { //nolint:gosec // few
		first := ""
		for range o.times {
			began := time.Now()
			out, err := o.once(ctx, p, schedule)
			journal := regexp.MustCompile(`journal: (.*)`).FindString(out)
			fmt.Printf("seed %d, schedule %d, %s: %s\n", o.seed, schedule, time.Since(began).Round(100*time.Millisecond), journal)
			switch {
			case err != nil:
				return fmt.Errorf("%w\n%s", err, out)
			case first != "" && journal != first:
				return errors.New("the journals of the same schedule differ")
			}
			first = journal
		}
	}
	return nil
}

// program is the compiled simulation.
type program struct {
	dir     string // is the root directory of the program
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// load compiles the simulation.
func load(ctx context.Context, dir string) (*program, error) {
	file := filepath.Join(dir, "simulate.wasm")
	build := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", file, "./simtest/simulate")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	cache, err := compiled(text)
	if err != nil {
		return nil, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, err
	}
	code, err := r.CompileModule(ctx, text)
	if err != nil {
		return nil, err
	}
	return &program{dir, r, code}, nil
}

// compiled returns the cache with the machine code of a program, which takes most of a minute to make and 200 MB of the
// disk. That of other programs is deleted.
func compiled(program []byte) (wazero.CompilationCache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "mesh-agent", "replay")
	others, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	name := fmt.Sprintf("%x", sha256.Sum256(program))
	for _, other := range others {
		if other.Name() != name {
			if err := os.RemoveAll(filepath.Join(dir, other.Name())); err != nil {
				return nil, err
			}
		}
	}
	return wazero.NewCompilationCacheWithDir(filepath.Join(dir, name))
}

// once runs the plan with a schedule, and returns what the simulation prints.
func (o options) once(ctx context.Context, p *program, schedule uint64) (string, error) {
	root, err := os.MkdirTemp(p.dir, "root")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(root)
	args := []string{"simulate", "-test.run=Campaign", "-test.v", fmt.Sprint("-simulate.seed=", o.seed), fmt.Sprint("-simulate.hours=", o.hours), "-simulate.mesh=" + o.mesh}
	if o.verbose {
		args = append(args, "-simulate.log")
	}
	if o.plan != "" {
		text, err := os.ReadFile(o.plan)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, "plan.txt"), text, 0o600)
		}
		if err != nil {
			return "", err
		}
		args = append(args, "-simulate.plan=/plan.txt")
	}
	if o.journal != "" {
		args = append(args, "-simulate.journal=/journal.txt")
	}
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil {
		return "", err
	}
	var out bytes.Buffer
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithEnv("TMPDIR", "/tmp").WithEnv("PWD", "/").
		WithStdout(&out).WithStderr(&out).WithRandSource(source(schedule)).
		WithFSConfig(wazero.NewFSConfig().WithDirMount(root, "/"))
	m, err := p.runtime.InstantiateModule(ctx, p.code, config)
	if m != nil {
		err = errors.Join(err, m.Close(ctx))
	}
	if exit := new(sys.ExitError); errors.As(err, &exit) && exit.ExitCode() == 0 {
		err = nil
	}
	if o.journal != "" {
		text, failed := os.ReadFile(filepath.Join(root, "journal.txt"))
		if failed == nil {
			failed = os.WriteFile(o.journal, text, 0o600)
		}
		err = errors.Join(err, failed)
	}
	return out.String(), err
}

// source returns the random bytes of a schedule, without end.
func source(schedule uint64) io.Reader {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], schedule)
	return rand.NewChaCha8(seed)
}
