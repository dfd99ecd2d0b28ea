package allocator

import (
	"math"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	var layout wire.Layout
	tests := map[string]struct {
		opts     []Option
		from, to uint64
		fails    []string // texts of the error
	}{
		"none":                               {nil, 1, math.MaxUint64, nil},
		"a range":                            {[]Option{WithMin(5), WithMax(9)}, 5, 9, nil},
		"one ID":                             {[]Option{WithMin(5), WithMax(5), WithPrefixMask(1 << 63)}, 1<<63 + 5, 1<<63 + 5, nil},
		"a mask above the range":             {[]Option{WithMin(256), WithMax(65535), WithPrefixMask(3 << 16)}, 3<<16 + 256, 3<<16 + 65535, nil},
		"a mask that the range has":          {[]Option{WithMin(3 << 16), WithMax(3<<16 + 65535), WithPrefixMask(3 << 16)}, 3 << 16, 3<<16 + 65535, nil},
		"a cluster":                          {[]Option{WithCluster(layout, 3)}, 3 << 16, 3<<16 + 65535, nil},
		"part of a cluster":                  {[]Option{WithCluster(layout, 3), WithMin(256), WithMax(300), WithPrefixMask(3 << 16)}, 3<<16 + 256, 3<<16 + 300, nil},
		"the least is 0":                     {[]Option{WithMin(0)}, 0, 0, []string{"0, which is no ID"}},
		"the wrong way round":                {[]Option{WithMin(9), WithMax(5)}, 0, 0, []string{"least ID 9 is greater than the greatest, 5"}},
		"a mask within the range":            {[]Option{WithMin(1), WithMax(65535), WithPrefixMask(1 << 15)}, 0, 0, []string{"0x8000 would make one ID of several"}},
		"a mask over all numbers":            {[]Option{WithPrefixMask(1 << 63)}, 0, 0, []string{"one ID of several"}},
		"a mask out of the cluster":          {[]Option{WithCluster(layout, 3), WithMin(256), WithMax(65535), WithPrefixMask(4 << 16)}, 0, 0, []string{"262400 to 327679 are not all of cluster 3, which has those from 196608 to 262143"}},
		"a range beyond the cluster":         {[]Option{WithCluster(layout, 3), WithMax(1 << 20)}, 0, 0, []string{"not all of cluster 3"}},
		"no attempt":                         {[]Option{WithMaxAttempts(0)}, 0, 0, []string{"0 attempts"}},
		"no interval":                        {[]Option{WithSyncInterval(0)}, 0, 0, []string{"must be positive"}},
		"no time for the list":               {[]Option{WithListTimeout(-1)}, 0, 0, []string{"must be positive"}},
		"several mistakes, reported at once": {[]Option{WithMin(0), WithMaxAttempts(-1)}, 0, 0, []string{"no ID", "-1 attempts"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := NewAllocator(newMemoryStore().backend("n"), tc.opts...)
			for _, part := range tc.fails {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, which does not say %q", err, part)
				}
			}
			if len(tc.fails) > 0 {
				return
			}
			must(t, err)
			if from, to := a.options.idRange(); from != tc.from || to != tc.to || !a.core.pool.inRange(from) || !a.core.pool.inRange(to) || a.core.pool.inRange(from-1) {
				t.Errorf("IDs go from %d to %d, want %d to %d", from, to, tc.from, tc.to)
			}
			if a.GetEvents() != nil {
				t.Error("there are events without the option")
			}
		})
	}
	if _, err := NewAllocator(nil); err == nil {
		t.Error("an allocator without a backend is no error")
	}
	if _, err := NewAllocatorForGC(newMemoryStore().backend("n"), WithoutGC()); err == nil {
		t.Error("an allocator for garbage collection without is no error")
	}
	if _, err := NewAllocatorForGC(nil); err == nil {
		t.Error("one without a backend is no error")
	}
}
