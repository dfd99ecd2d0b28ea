// Command mutants tests the judge of the simulation: it makes errors of the program (mutants), one at a time, simulates meshes until one of them
// shows the error, prints a table, and notes the results in found.txt. A mutant that none shows is a fault of the judge, of
// the plans, or no error. No source is changed.
//
//	go run ./simtest/simulate/mutants [-only PART] [-hours 0.5] [-limit 10m] [-jobs 2]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	only := flag.String("only", "", "make only the mutants with this text in their name")
	hours := flag.Float64("hours", 0.5, "simulated hours of each seed")
	limit := flag.Duration("limit", 10*time.Minute, "time after which a mutant counts as not found")
	jobs := flag.Int("jobs", 2, "mutants at the same time")
	flag.Parse()
	if !slices.ContainsFunc(mutants(), func(m mutant) bool { return strings.Contains(m.name, *only) }) {
		fmt.Fprintf(os.Stderr, "mutants: -only %q: no name in simtest/simulate/mutants/list.go has this text\n", *only)
		os.Exit(2)
	}
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: the revision:", err)
		os.Exit(1)
	}
	revision := strings.TrimSpace(string(out))
	var missed atomic.Int32
	var g errgroup.Group
	var printing sync.Mutex
	g.SetLimit(*jobs)
	fmt.Println("| mutant | file | found by seed | after | as |\n|---|---|---|---|---|")
	for _, m := range mutants() {
		if !strings.Contains(m.name, *only) {
			continue
		}
		g.Go(func() error {
			r, err := m.hunt(*hours, *limit)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if r.seed == notFound {
				missed.Add(1)
			}
			printing.Lock()
			defer printing.Unlock()
			fmt.Printf("| %s | %s | %s | %s | %s |\n", m.name, m.file, r.seed, r.took, r.as)
			return note(m.name, fmt.Sprintf("%s\t%s\t%s", r.seed, r.took, revision))
		})
	}
	err = g.Wait()
	if err == nil && missed.Load() > 0 {
		err = fmt.Errorf("%d are not found", missed.Load())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// results is the file of the results, from the root of the repository.
const results = "simtest/simulate/mutants/found.txt"

// note replaces the result of a defect in the file.
func note(name, result string) error {
	text, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	before := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		of, _, _ := strings.Cut(line, "\t")
		before[of] = line
	}
	before[name] = name + "\t" + result + "\n"
	var b strings.Builder
	b.WriteString("# Each mutant of list.go: the seed that found it, the time until then, and the revision. The command mutants writes this.\n")
	for _, m := range mutants() {
		b.WriteString(before[m.name])
	}
	return os.WriteFile(results, []byte(b.String()), 0o644) //nolint:gosec // a file of the repository
}

const notFound = "not found"

// result is what showed a mutant, and when; the seed can be notFound.
type result struct {
	seed, as string
	took     time.Duration
}

// hunt simulates seeds with the mutant until one fails, or the time is over.
func (m mutant) hunt(hours float64, limit time.Duration) (r result, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "simulate.test")
	if err := m.build(dir, program); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	run := exec.CommandContext(ctx, program, "-test.run", "Campaign", "-test.timeout", "0", "-simulate.seed", "1", "-simulate.seeds", "1000000", "-simulate.hours", fmt.Sprint(hours))
	var out bytes.Buffer
	run.Stdout, run.Stderr, run.Env = &out, &out, append(os.Environ(), "TMPDIR="+dir)
	err = run.Run()
	r = result{seed: notFound, took: time.Since(began).Round(time.Second)}
	if ctx.Err() != nil || err == nil {
		return r, nil
	}
	r.seed, r.as = "it ended", firstLine(out.String())
	if at := regexp.MustCompile(`-simulate\.seed=(\d+) -simulate\.hours=\S+: (.*)`).FindStringSubmatch(out.String()); at != nil {
		r.seed, r.as = at[1], at[2]
	}
	r.as = fmt.Sprintf("%.200s", strings.ReplaceAll(r.as, "|", "/"))
	return r, nil
}

// build compiles the simulation with the mutant.
func (m mutant) build(dir, program string) error {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return fmt.Errorf("%s has %q %d times, not once", m.file, m.old, n)
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return err
	}
	here, err := filepath.Abs(m.file)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {here: changed}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return err
	}
	out, err := exec.Command("go", "test", "-vet=off", "-c", "-overlay", overlay, "-o", program, "./simtest/simulate").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "panic") || strings.Contains(line, "FAIL") || strings.Contains(line, "race") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
