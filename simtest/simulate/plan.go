package simulate

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// Step is one event of a plan: an operation of the workload, the begin of a fault, or its end. N decides the details.
type Step struct {
	At      time.Duration // since the start
	Cluster int           // from 0
	Do      string
	N       uint64
}

// String returns the line of a plan, such as "0:01:02.5 c2 scale 77".
func (s Step) String() string {
	hours, rest := s.At/time.Hour, s.At%time.Hour
	text := fmt.Sprintf("%d:%02d:%06.3f", hours, rest/time.Minute, (rest % time.Minute).Seconds())
	return fmt.Sprintf("%s c%d %s %d", text, s.Cluster+1, s.Do, s.N)
}

// rng decides the details of the step.
func (s Step) rng() *rand.Rand { return rand.New(rand.NewPCG(s.N, uint64(len(s.Do)))) }

// Plan is all steps, in the order of their times.
type Plan []Step

func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// ParsePlan reads the text of a plan. Empty lines and lines that begin with # are left out.
func ParsePlan(text string) (p Plan, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var s Step
		var hours, minutes int64
		var seconds float64
		if _, err := fmt.Sscanf(line, "%d:%d:%f c%d %s %d", &hours, &minutes, &seconds, &s.Cluster, &s.Do, &s.N); err != nil {
			return nil, fmt.Errorf("line %d of the plan, %q: %w; want for example \"0:01:02.500 c2 scale 77\"", n, line, err)
		}
		s.At = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds*1000+0.5)*time.Millisecond
		if s.Cluster--; s.Cluster < 0 || !known(s.Do) {
			return nil, fmt.Errorf("line %d of the plan, %q: there is no such cluster or step", n, line)
		}
		p = append(p, s)
	}
	p.sort()
	return p, lines.Err()
}

func (p Plan) sort() {
	slices.SortStableFunc(p, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
}

func known(do string) bool {
	name, _ := cutEnding(do)
	_, fault := faultOf(name)
	return fault || slices.Contains(workload(), do)
}

// ending begins the name of the step that ends a fault.
const ending = "no-"

// Size is the size of a plan.
type Size struct {
	Clusters int
	Objects  Objects // of each cluster
	Length   time.Duration
	// Every is the mean time between two operations of the workload, in the whole mesh, and Calm the mean time between
	// the end of a fault of a cluster and the begin of its next one.
	Every, Calm time.Duration
}

// ParseSize reads a size such as "3x10x20x100/5s": clusters, the nodes, services and pods that each can have, and the mean
// time between two operations. It has no length yet.
func ParseSize(text string) (Size, error) {
	size, every := Size{Calm: 3 * time.Minute}, ""
	_, err := fmt.Sscanf(text, "%dx%dx%dx%d/%s", &size.Clusters, &size.Objects.Nodes, &size.Objects.Services, &size.Objects.Pods, &every)
	if err == nil {
		size.Every, err = time.ParseDuration(every)
	}
	if err == nil && (min(size.Clusters-1, size.Objects.Nodes, size.Objects.Services, size.Objects.Pods) < 1 || size.Objects.Nodes > 250 || size.Objects.Pods > 12_500 || size.Every <= 0) {
		err = errors.New("it needs 2 clusters or more, 1 to 250 nodes, 1 service or more, 1 to 12,500 pods, and a time above 0")
	}
	if err != nil {
		return Size{}, fmt.Errorf("the size of a mesh is %q: %w; want for example \"3x10x20x100/5s\"", text, err)
	}
	return size, nil
}

// faultsAtOnce is how many faults a cluster may have at the same time.
const faultsAtOnce = 3

// NewPlan makes a plan. Each plan leaves out some kinds of faults, or most of them, so that the others occur in more
// mixtures, and in more places of the same programs. Some have operations of mostly one kind, and some no fault that
// changes the contents of a kvstore, after which allocations are not judged for a while.
func NewPlan(seed uint64, size Size) Plan {
	g := rand.New(rand.NewPCG(seed, 0))
	var p Plan
	exp := func(mean time.Duration) time.Duration {
		return time.Duration(g.ExpFloat64() * float64(mean)).Round(time.Millisecond)
	}
	operations := workload()
	if favoured := operations[g.IntN(len(operations))]; g.IntN(2) == 0 {
		operations = append(operations, slices.Repeat([]string{favoured}, len(operations))...)
	}
	operation := func(at time.Duration, c int) Step {
		return Step{at, c, operations[g.IntN(len(operations))], g.Uint64() >> 32}
	}
	for at := exp(size.Every); at < size.Length; at += exp(size.Every) {
		one := operation(at, g.IntN(size.Clusters))
		p = append(p, one)
		if g.IntN(10) == 0 { // several changes of the same kind at once, as in a rollout
			for range g.IntN(10) {
				one.N = g.Uint64() >> 32
				p = append(p, one)
			}
		}
	}
	// Errors are where a fault meets a change, so a third of the faults begin and end amid changes of the cluster.
	meet := func(at time.Duration, c int) {
		if g.IntN(3) > 0 {
			return
		}
		one := operation(at, c)
		for range 1 + g.IntN(6) {
			one.At, one.N = min(at+exp(time.Second), size.Length), g.Uint64()>>32
			p = append(p, one)
		}
	}
	out, clean := []float64{0.2, 0.4, 0.9}[g.IntN(3)], g.IntN(3) == 0
	kinds := slices.DeleteFunc(faults(), func(f fault) bool { return g.Float64() < out || clean && isSpoiling(f.name) })
	calm := size.Calm * time.Duration([]int{1, 1, 2, 5, 20}[g.IntN(5)]) // what follows a fault is judged, too
	for series := range faultsAtOnce * size.Clusters {
		c := series % size.Clusters
		for at := exp(calm); at < size.Length && len(kinds) > 0; at += exp(calm) {
			f := kinds[g.IntN(len(kinds))]
			p = append(p, Step{at, c, f.name, g.Uint64() >> 32})
			meet(at, c)
			if f.end != nil {
				at = min(at+exp(f.lasts), size.Length)
				p = append(p, Step{at, c, ending + f.name, g.Uint64() >> 32})
				meet(at, c)
			}
		}
	}
	p.sort()
	return p
}

func cutEnding(do string) (name string, ends bool) { return strings.CutPrefix(do, ending) }

// scale is how many times as many objects as the mesh of most campaigns the whole mesh can have, rounded up.
func (s Size) scale() int {
	return (s.Clusters*(s.Objects.Nodes+s.Objects.Services+s.Objects.Pods) + 399) / 400
}

// budget is what a cluster of this size may have: twice its keys of each family.
func (s Size) budget() *budget.Budget {
	all := budget.Default()
	for r, share := range all.Resources {
		share.Keys = 2 * (s.Objects.Nodes + s.Objects.Services + s.Objects.Pods + numIdentities + numContested)
		all.Resources[r] = share
	}
	return &all
}
