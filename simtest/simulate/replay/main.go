//go:build linux && amd64

// Command replay runs plans of the simulation so that a run can be repeated: the same seed, plan and schedule give the
// same journal, byte for byte. The simulation runs at its usual speed, in a process whose random numbers, with which Go
// orders goroutines, cases of select and keys of maps, and whose clock come from here (exact.go).
//
//	go run ./simtest/simulate/replay -seed 7 -hours 0.5 [-plan plan.txt] [-schedule 3] [-schedules 20] [-times 2]
//
// A failure that depends on the order of goroutines may need another schedule than the one in which it was found:
// -schedules tries some, one after another.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// options are the flags.
type options struct {
	seed, schedule   uint64
	hours            float64
	mesh             string
	plan, journal    string
	seeds            int
	cpu              uint
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
	flag.UintVar(&o.cpu, "cpu", 0, "the processor that the simulation runs on, or the next one that it can use")
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
	program := filepath.Join(dir, "simulate.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", program, "./simtest/simulate").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if o.plan, err = absolute(o.plan); err != nil {
		return err
	}
	for range o.seeds {
		if err := o.replay(ctx, program); err != nil {
			return err
		}
		o.seed++
	}
	return nil
}

// absolute returns the absolute path of a file, since the simulation has another working directory.
func absolute(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	return filepath.Abs(file)
}

// replay runs the schedules of one seed.
func (o options) replay(ctx context.Context, program string) error {
	for schedule := o.schedule; schedule < o.schedule+uint64(o.schedules); schedule++ { //nolint:gosec // few
		first := ""
		for range o.times {
			began := time.Now()
			out, err := o.once(ctx, program, schedule)
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

// once runs the plan with a schedule, and returns what the simulation prints. Its directory of files is always "files",
// in its working directory: the order of names in a map depends on them.
func (o options) once(ctx context.Context, program string, schedule uint64) (string, error) {
	root, err := os.MkdirTemp(filepath.Dir(program), "root")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(root)
	if err := os.Mkdir(filepath.Join(root, "files"), 0o700); err != nil {
		return "", err
	}
	args := []string{
		"-test.run=Campaign", "-test.v", "-test.timeout=0", "-simulate.exact", fmt.Sprint("-simulate.seed=", o.seed),
		fmt.Sprint("-simulate.hours=", o.hours), "-simulate.mesh=" + o.mesh, "-simulate.plan=" + o.plan,
	}
	if o.verbose {
		args = append(args, "-simulate.log")
	}
	if o.journal != "" {
		args = append(args, "-simulate.journal=journal.txt")
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &out, &out
	cmd.Env = []string{"TMPDIR=files", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,gcstoptheworld=2", "GOGC=off", "GOMEMLIMIT=4GiB"}
	err = runExactly(cmd, schedule, o.cpu)
	if o.journal != "" {
		text, failed := os.ReadFile(filepath.Join(root, "journal.txt"))
		err = cmp.Or(err, failed, os.WriteFile(o.journal, text, 0o600))
	}
	return out.String(), err
}
