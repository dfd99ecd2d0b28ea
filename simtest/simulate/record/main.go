// Command record runs the tests of the errors that the simulation found, and a campaign on all cores, notes that in
// campaigns.txt, and writes the record of docs/correctness.md from that file and the results of the mutants.
//
//	go run ./simtest/simulate/record [-seeds 100] [-hours 0.5] [-mesh 3x10x20x100/5s] [-first SEED]
//	go run ./simtest/simulate/record -seeds 0    # only writes the record
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// The files, from the root of the repository.
const (
	campaigns = "simtest/simulate/record/campaigns.txt"
	found     = "simtest/simulate/mutants/found.txt"
	page      = "docs/correctness.md"
)

func main() {
	seeds := flag.Int("seeds", 100, "number of seeds; 0: no campaign and no tests")
	hours := flag.Float64("hours", 0.5, "simulated hours of each seed")
	mesh := flag.String("mesh", "3x10x20x100/5s", "size of the mesh, as in -simulate.mesh")
	first := flag.Uint64("first", rand.Uint64()>>32, "the first seed")
	flag.Parse()
	if err := run(*seeds, *hours, *mesh, *first); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(seeds int, hours float64, mesh string, first uint64) error {
	if seeds > 0 {
		revision, err := output("git", "describe", "--always", "--dirty")
		if err != nil {
			return err
		}
		if err := runTests(); err != nil {
			return err
		}
		c := campaign{time.Now().Format(time.DateOnly), revision, mesh, seeds, hours, first, 0, "nothing found"}
		if err := c.run(); err != nil {
			return err
		}
		if err := appendLine(campaigns, c.String()); err != nil {
			return err
		}
	}
	return writePage()
}

// campaign is a line of campaigns.txt.
type campaign struct {
	date, revision, mesh string
	seeds                int
	hours                float64 // of each seed
	first                uint64
	cpu                  time.Duration
	result               string
}

func (c campaign) String() string {
	return fmt.Sprintf("%s\t%s\t%s\t%d from %d on\t%g\t%s\t%s", c.date, c.revision, c.mesh, c.seeds, c.first, float64(c.seeds)*c.hours, c.cpu.Round(time.Minute), c.result)
}

// hoursForAll is the length of a campaign in which every situation must occur (docs/correctness.md).
const hoursForAll = 20

// run simulates all seeds, in as many processes as there are cores, and sets the CPU time and the result. The error has the
// output of a process that failed: it ends at the first seed with a finding.
func (c *campaign) run() error {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "simulate.test")
	if _, err := output("go", "test", "-c", "-o", program, "./simtest/simulate"); err != nil {
		return err
	}
	processes := min(runtime.NumCPU(), c.seeds)
	used, said := make([]time.Duration, processes), make([]string, processes)
	var g errgroup.Group
	for i := range processes {
		from, to := c.seeds*i/processes, c.seeds*(i+1)/processes
		g.Go(func() error {
			one := exec.Command(program, "-test.run", "Campaign", "-test.v", "-test.timeout", "0",
				"-simulate.mesh", c.mesh, "-simulate.hours", fmt.Sprint(c.hours), "-simulate.seed", fmt.Sprint(c.first+uint64(from)), "-simulate.seeds", fmt.Sprint(to-from)) //nolint:gosec // not negative
			out, err := one.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			used[i], said[i] = one.ProcessState.UserTime()+one.ProcessState.SystemTime(), string(out)
			return nil
		})
	}
	err = g.Wait()
	for _, u := range used {
		c.cpu += u
	}
	if missing := missing(said); err == nil && len(missing) > 0 {
		if float64(c.seeds)*c.hours >= hoursForAll {
			return fmt.Errorf("these situations did not occur: %q", missing)
		}
		c.result += fmt.Sprintf("; situations that did not occur: %d", len(missing))
	}
	return err
}

// missing returns the situations that occurred in no process, from their tables.
func missing(outputs []string) []string {
	counts := make(map[string]int)
	for _, out := range outputs {
		for _, row := range regexp.MustCompile(`(?m)^ +(\d+) (\S.*)$`).FindAllStringSubmatch(out, -1) {
			n, _ := strconv.Atoi(row[1]) // digits
			counts[row[2]] += n
		}
	}
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n > 0 })
	return slices.Sorted(maps.Keys(counts))
}

// commands returns the commands in the table of the errors that the simulation found.
func commands(text string) (all []string) {
	_, table, _ := strings.Cut(text, "## Errors that the simulation found")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, found := range regexp.MustCompile("`(go test [^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		all = append(all, found[1])
	}
	return all
}

// runTests runs these commands. Each must run a test, and all must pass.
func runTests() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	var failed []error
	for _, command := range commands(string(text)) {
		out, err := output("sh", "-c", command+" -count=1 -v")
		if err == nil && !strings.Contains(out, "--- PASS") {
			err = errors.New("it runs no test")
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", command, err))
		}
	}
	return errors.Join(failed...)
}

const begin, end = "<!-- The command record writes the following. -->\n", "<!-- Until here. -->\n"

// writePage writes the record into the page.
func writePage() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	runs, err := os.ReadFile(campaigns)
	if err != nil {
		return err
	}
	mutants, err := os.ReadFile(found)
	if err != nil {
		return err
	}
	changed, err := withRecord(string(text), string(runs), string(mutants))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}

// withRecord returns the text of the page with the record of these campaigns and mutants.
func withRecord(text, runs, mutants string) (string, error) {
	before, rest, has := strings.Cut(text, begin)
	_, after, ends := strings.Cut(rest, end)
	if !has || !ends {
		return "", fmt.Errorf("%s does not have the lines %q and %q", page, begin, end)
	}
	var b strings.Builder
	b.WriteString(before + begin + "\n| date | revision | mesh | seeds | simulated hours | CPU time | result |\n|---|---|---|---|---|---|---|\n")
	for line := range strings.Lines(runs) {
		fmt.Fprintf(&b, "| %s |\n", strings.ReplaceAll(strings.TrimSpace(line), "\t", " | "))
	}
	results := map[string]int{"found": 0}
	for line := range strings.Lines(mutants) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) > 1 {
			if _, err := strconv.Atoi(fields[1]); err == nil {
				fields[1] = "found"
			}
			results[fields[1]]++
		}
	}
	b.WriteString("\n| errors of the program, made on purpose | number |\n|---|---|\n")
	for _, result := range slices.Sorted(maps.Keys(results)) {
		fmt.Fprintf(&b, "| %s | %d |\n", result, results[result])
	}
	fmt.Fprintf(&b, "\n%s%s", end, after)
	return b.String(), nil
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// output runs a command and returns its output, without the space around it. The error has the output.
func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return string(bytes.TrimSpace(out)), nil
}
