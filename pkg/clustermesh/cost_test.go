package clustermesh

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// costOf describes one decoder: its input, and the inputs that are expensive.
type costOf struct {
	name   string                                       // of the key
	golden string                                       // file of values that Cilium wrote
	decode func(name string, value []byte) (any, error) // to the form that the tables keep
	pack   func([]byte) []byte                          // converts the text to the written value; nil if they are the same
	warm   []byte                                       // makes the decoder allocate the memory that it keeps
	worst  map[string]parts
}

// parts builds a value with any number of small parts. Its padding costs nothing to read.
type parts struct {
	before, after string
	unit          func(i int) string
	pad           func(n int) string
}

func (p parts) value(n, padding int) []byte {
	var b strings.Builder
	b.WriteString(p.before)
	for i := range n {
		b.WriteString(p.unit(i))
	}
	b.WriteString(p.after)
	b.WriteString(p.pad(padding))
	return []byte(b.String())
}

// maxRatio returns the highest cost of a value, as a multiple of its bytes. It allows for the memory that the race detector
// adds to each allocation. The real bound is checked by the fuzz target, which runs without it.
func maxRatio() float64 {
	if heaptest.Raced {
		return wire.MaxCost * 5 / 4
	}
	return wire.MaxCost
}

// ratio returns the cost of a value as a multiple of its size. The cost is all memory that is allocated to decode it to
// the form that the tables keep, including garbage. The size of a compressed value is its uncompressed size, since that
// is the decoder's input; TestACompressedValueIsBounded tests how large it may be. Memory that a decoder allocates once
// and keeps does not count.
func (c costOf) ratio(plain []byte) (ratio float64, err error) {
	value := plain
	if c.pack != nil {
		value = c.pack(plain)
	}
	for range runtime.GOMAXPROCS(0) {
		_, _ = c.decode("", c.warm)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	kept, err := c.decode(c.name, value)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(max(len(plain), wire.MinCharged)), err
}

// refuses reports whether a value is too large.
func (c costOf) refuses(plain []byte) bool {
	if c.pack != nil {
		plain = c.pack(plain)
	}
	_, err := c.decode(c.name, plain)
	return tooLarge(err)
}

// worstRatio is ratio for a value of which no text is interned, without the allocations of other goroutines.
func (c costOf) worstRatio(plain []byte) (ratio float64, err error) {
	for i := range 3 {
		runtime.GC() // drops texts that are no longer used
		runtime.GC()
		if r, e := c.ratio(plain); i == 0 || r < ratio {
			ratio, err = r, e
		}
		if ratio <= maxRatio() {
			break
		}
	}
	return ratio, err
}

func tooLarge(err error) bool {
	r, ok := errors.AsType[*wire.RejectError](err)
	return ok && r.Reason == wire.ReasonTooLarge
}

// TestNoValueCostsMoreThanItsBytesAllow: the worst value of each kind is the largest that is not refused.
func TestNoValueCostsMoreThanItsBytesAllow(t *testing.T) {
	waittest.Long(t)
	sizes := []int{1, 20, 100, 300, 2000, 6000}
	if heaptest.Raced { // with the race detector it takes five times as long, and finds nothing more
		sizes = []int{200}
	}
	for name, c := range costs(t) {
		for kind, p := range c.worst {
			for _, n := range sizes {
				padding := leastFalse(2048+400*n, func(padding int) bool { return c.refuses(p.value(n, padding)) })
				for _, padding := range []int{0, padding} {
					if r, err := c.worstRatio(p.value(n, padding)); r > maxRatio() {
						t.Errorf("%s: %d %s with padding %d cost %.1f times their bytes (%v)", name, n, kind, padding, r, err)
					}
				}
			}
		}
	}
}

// seeds returns values that Cilium wrote, and small versions of the known worst values.
func (c costOf) seeds(t testing.TB) [][]byte {
	b, err := os.ReadFile(filepath.Join("..", "wire", "testdata", "golden", c.golden))
	must(t, err)
	var vectors []struct {
		Value   []byte `json:"value_base64"`
		Message []byte `json:"uncompressed_base64"`
	}
	must(t, json.Unmarshal(b, &vectors))
	var all [][]byte
	for _, v := range vectors {
		if c.pack != nil {
			v.Value = v.Message
		}
		all = append(all, v.Value)
	}
	for _, p := range c.worst {
		all = append(all, p.value(20, 10))
	}
	slices.SortFunc(all, bytes.Compare) // the order of the map is random
	return all
}

// FuzzCost: no value that a remote cluster writes costs more than [wire.MaxCost] times its bytes.
func FuzzCost(f *testing.F) {
	all := costs(f)
	for name, c := range all {
		for _, seed := range c.seeds(f) {
			f.Add(name, seed)
		}
	}
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		c, known := all[name]
		if !known {
			return
		}
		if r, _ := c.ratio(value); r > maxRatio() {
			if r, err := c.worstRatio(value); r > maxRatio() {
				t.Errorf("%s costs %.1f times its bytes (%v)", name, r, err)
			}
		}
	})
}

// leastFalse returns the lowest number below a bound for which a monotonic condition does not hold; the bound when
// there is none.
func leastFalse(bound int, holds func(int) bool) int {
	low, high := 0, 0
	for high < bound && holds(high) { // most results are near 0, and large values take long to create
		low, high = high+1, 2*high+1024
	}
	for high = min(high, bound); low < high; {
		if mid := (low + high) / 2; holds(mid) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
