package records

import (
	"fmt"
	"hash/maphash"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

// TestRecordsMachine compares the records with a map. There are few names, so that places are reused and the index is
// crowded. One name is empty, like that of a key that equals the prefix.
func TestRecordsMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := New[string](maphash.MakeSeed())
		want, seen := map[string]int64{}, map[string]bool{}
		name := rapid.Custom(func(t *rapid.T) string {
			if n := rapid.IntRange(0, 200).Draw(t, "number"); n > 0 {
				return fmt.Sprint("10.0.0.", n)
			}
			return ""
		})
		rev := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "records") {
					rev++
					n := name.Draw(t, "name")
					p, known := s.Find([]byte(n))
					if _, has := want[n]; has != known {
						t.Fatalf("%q is known: %t", n, known)
					}
					if !known {
						p = s.Add(n)
					}
					s.At(p).Rev, want[n] = rev, rev
					if rapid.Bool().Draw(t, "met") {
						s.MarkSeen(p)
						seen[n] = true
					}
				}
			},
			"remove": func(t *rapid.T) {
				n := name.Draw(t, "name")
				if p, known := s.Find([]byte(n)); known {
					s.Remove(p)
				}
				delete(want, n)
				delete(seen, n)
			},
			"remove some while iterating": func(t *rapid.T) {
				for p := range s.All() {
					if r := s.At(p); r.Rev%2 == 0 {
						delete(want, r.Name)
						delete(seen, r.Name)
						s.Remove(p)
					}
				}
			},
			"begin a list": func(*rapid.T) {
				s.ForgetSeen()
				clear(seen)
			},
			"": func(t *rapid.T) {
				got, met := map[string]int64{}, map[string]bool{}
				for p := range s.All() {
					r := s.At(p)
					got[r.Name] = r.Rev
					if s.IsSeen(p) {
						met[r.Name] = true
					}
					if found, known := s.Find([]byte(r.Name)); !known || found != p {
						t.Fatalf("%q is at %d and was found at %d (%t)", r.Name, p, found, known)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || s.Len() != len(want) {
					t.Fatalf("%d records (-want +got):\n%s", s.Len(), diff)
				}
				if !maps.Equal(seen, met) {
					t.Fatalf("met %v, want %v", met, seen)
				}
			},
		})
	})
}

// BenchmarkRecords measures the memory that the Set needs for each key in addition to the object and the name, and the
// time to find a key. The floor is a Go map with the same contents.
func BenchmarkRecords(b *testing.B) {
	const n = 1_000_000
	names := make([][]byte, n)
	texts := make([]string, n)
	for i := range names {
		texts[i] = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		names[i] = []byte(texts[i])
	}
	run := func(name string, fill func() (find func([]byte))) {
		b.Run(name, func(b *testing.B) {
			before := heaptest.Live()
			find := fill()
			size := heaptest.Live() - before
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				find(names[i])
			}
			b.ReportMetric(float64(size)/n, "B/key")
		})
	}
	run("records", func() func([]byte) {
		s := New[int](maphash.MakeSeed())
		for _, name := range texts {
			s.MarkSeen(s.Add(name))
		}
		return func(name []byte) { s.Find(name) }
	})
	run("floor", func() func([]byte) {
		m := make(map[string]struct {
			rev, hash uint64
			obj       *int
			seen      bool
		})
		for _, name := range texts {
			m[name] = m[""]
		}
		return func(name []byte) { _ = m[string(name)] }
	})
}
