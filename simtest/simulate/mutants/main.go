// Command mutants tests the judge of the simulation: it plants defects, one at a time, simulates meshes until one of them
// shows the defect, and prints a table. A defect that none shows is a fault of the judge, of the plans, or no defect. No
// file of the repository is changed.
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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	only := flag.String("only", "", "plant only the defects with this text in their name")
	hours := flag.Float64("hours", 0.5, "simulated hours of each seed")
	limit := flag.Duration("limit", 10*time.Minute, "time after which a defect counts as not found")
	jobs := flag.Int("jobs", 2, "defects at the same time")
	flag.Parse()
	var missed atomic.Int32
	var g errgroup.Group
	var printing sync.Mutex
	g.SetLimit(*jobs)
	fmt.Println("| defect | file | found by seed | after | as |\n|---|---|---|---|---|")
	for _, m := range mutants() {
		if !strings.Contains(m.name, *only) {
			continue
		}
		g.Go(func() error {
			row, found, err := m.hunt(*hours, *limit)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if !found {
				missed.Add(1)
			}
			printing.Lock()
			defer printing.Unlock()
			fmt.Println(row)
			return nil
		})
	}
	err := g.Wait()
	if err == nil && missed.Load() > 0 {
		err = fmt.Errorf("%d are not found", missed.Load())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// hunt simulates seeds with the defect until one fails, or the time is over.
func (m mutant) hunt(hours float64, limit time.Duration) (row string, found bool, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "simulate.test")
	if err := m.build(dir, program); err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	run := exec.CommandContext(ctx, program, "-test.run", "Campaign", "-test.timeout", "0", "-simulate.seed", "1", "-simulate.seeds", "1000000", "-simulate.hours", fmt.Sprint(hours))
	var out bytes.Buffer
	run.Stdout, run.Stderr, run.Env = &out, &out, append(os.Environ(), "TMPDIR="+dir)
	err = run.Run()
	took := time.Since(began).Round(100 * time.Millisecond)
	if ctx.Err() != nil || err == nil {
		return fmt.Sprintf("| %s | %s | not found | %s | |", m.name, m.file, took), false, nil
	}
	seed, as := "it ended", firstLine(out.String())
	if at := regexp.MustCompile(`-simulate\.seed=(\d+) -simulate\.hours=\S+: (.*)`).FindStringSubmatch(out.String()); at != nil {
		seed, as = at[1], at[2]
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %.200s |", m.name, m.file, seed, took, strings.ReplaceAll(as, "|", "/")), true, nil
}

// build compiles the simulation with the defect.
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
