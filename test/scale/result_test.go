package scale

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// result has the needs of one run of the agent or of the floor.
type result struct {
	Seconds  float64 // from the start of the process until everything is read
	CPU      float64 // seconds of all cores, until then
	Keys     int
	Heap     float64 // live bytes then
	Peak     float64 // maximum resident bytes
	Resident float64 // and then, after garbage collection
}

func values(of []result, f func(result) float64) []float64 {
	var out []float64
	for _, r := range of {
		out = append(out, f(r))
	}
	slices.Sort(out)
	return out
}

func least(of []result, f func(result) float64) float64  { return values(of, f)[0] }
func most(of []result, f func(result) float64) float64   { return values(of, f)[len(of)-1] }
func median(of []result, f func(result) float64) float64 { return values(of, f)[len(of)/2] }

// userHertz is the unit of CPU times in /proc on Linux, independent of the kernel's own.
const userHertz = 100

// cpuSeconds is the CPU time that a process has used, without its children.
func cpuSeconds(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the program, in parentheses, may contain spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("/proc/%d/stat says %q", pid, text)
	}
	return float64(user+system) / userHertz, nil
}

// resident is the present and the peak memory of a process in bytes. Unlike getrusage's, this peak does not include the
// process that started it.
func resident(pid int) (now, peak float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		for name, to := range map[string]*float64{"VmRSS:": &now, "VmHWM:": &peak} {
			var kib float64
			if rest, ok := strings.CutPrefix(line, name); ok {
				if _, err := fmt.Sscanf(rest, "%f kB", &kib); err != nil {
					return 0, 0, fmt.Errorf("/proc/%d/status says %q: %w", pid, line, err)
				}
				*to = kib * 1024
			}
		}
	}
	return now, peak, nil
}
