package simulate

import (
	"bytes"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"
)

// censusLabel is the label of all goroutines of a run. A goroutine inherits it from the one that starts it.
const censusLabel = "run"

// census has the numbers of goroutines, by the two functions that they began with.
type census map[string]int

// takeCensus counts the goroutines with this value of the label.
func takeCensus(value string) census {
	var text bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&text, 1) // a buffer returns no error
	all := census{}
	for group := range strings.SplitSeq(text.String(), "\n\n") {
		n, frames := 0, []string(nil)
		for line := range strings.Lines(group) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" && strings.HasPrefix(fields[1], "0x") {
				name, _, _ := strings.Cut(fields[2], "+0x")
				frames = append(frames, name)
			}
		}
		if _, err := fmt.Sscanf(group, "%d @", &n); err == nil && strings.Contains(group, fmt.Sprintf("%q:%q", censusLabel, value)) {
			all[strings.Join(frames[max(len(frames)-2, 0):], " of ")] += n
		}
	}
	return all
}

func (c census) total() (n int) {
	for _, some := range c {
		n += some
	}
	return n
}

// since describes the functions with more goroutines than in an earlier census.
func (c census) since(before census) string {
	var more []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if d := c[name] - before[name]; d > 0 {
			more = append(more, fmt.Sprintf("%d more of %s", d, name))
		}
	}
	return strings.Join(more, ", ")
}
