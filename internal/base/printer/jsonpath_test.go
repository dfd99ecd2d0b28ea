package printer

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
)

type pathed struct {
	Name  string  `json:"name"`
	Count *int    `json:"count,omitempty"`
	Share float64 `json:"share"`
}

func all(of ...pathed) iter.Seq2[pathed, error] {
	return func(yield func(pathed, error) bool) {
		for _, one := range of {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// TestPathsOfLists: numbers as they are, and texts of others in one line.
func TestPathsOfLists(t *testing.T) {
	t.Parallel()
	items := all(pathed{"a\nb\x1b[31m", new(16777216), 0.5}, pathed{"c", nil, 1})
	for path, want := range map[string]string{
		"{.items[*].count}":      "16777216\n",
		"{.items[1].name}":       "c\n",
		"{.items[*].share}":      "0.5 1\n",
		"{.revision} {.next}":    "7 on\n",
		".items[0].name":         Clean("a\nb\x1b[31m") + "\n",
		"{.items[*]['nothing']}": "\n",
	} {
		f := NewFormat(JSON, JSONPath)
		if err := f.Set("jsonpath=" + path); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var out bytes.Buffer
		n, err := Structured(&out, f, Listing[pathed]{Revision: 7, Items: items, Next: func() string { return "on" }})
		if err != nil || n != 2 || out.String() != want {
			t.Errorf("%s: %d items, %v: %q, not %q", path, n, err, out.String(), want)
		}
	}
	broken := errors.New("broken")
	f := NewFormat(JSON, JSONPath)
	if err := f.Set("jsonpath={.items}"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fails := func(yield func(pathed, error) bool) { yield(pathed{}, broken) }
	if _, err := Structured(&out, f, Listing[pathed]{Items: fails, Next: func() string { return "" }}); !errors.Is(err, broken) || out.Len() > 0 {
		t.Errorf("a list that breaks: %v, %q", err, out.String())
	}
	if err := f.Set("yaml"); err == nil {
		t.Error("a format that is not allowed is taken")
	}
	if err := f.Set("json"); err != nil || f.path != nil {
		t.Errorf("the path stays: %v", err)
	}
}

func TestSorted(t *testing.T) {
	t.Parallel()
	items := all(pathed{"b", new(10), 0}, pathed{"a", nil, 0}, pathed{"d", new(9), 0}, pathed{"c", new(10), 0})
	for path, want := range map[string]string{"{.name}": "a b c d", ".count": "a d b c", ".share": "b a d c"} {
		by, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		sorted, err := Sorted(items, by)
		var names []string
		for _, one := range sorted {
			names = append(names, one.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %s, %v, not %s", path, got, err, want)
		}
	}
	for _, path := range []string{".nothing", "{.name.nothing}", ".counts[*].x"} {
		by, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		sorted, err := Sorted(items, by)
		if !errors.Is(err, ErrNoField) || !strings.Contains(err.Error(), ".count, .name") || sorted != nil {
			t.Errorf("%s: %v, %v", path, sorted, err)
		}
		if sorted, err := Sorted(all(), by); err != nil || len(sorted) != 0 {
			t.Errorf("%s of nothing: %v, %v", path, sorted, err)
		}
	}
	if slices.Compare([]int{compareKeys(int64(2), 10.0), compareKeys("2", int64(10))}, []int{-1, 1}) != 0 {
		t.Error(fmt.Sprint(compareKeys(int64(2), 10.0), compareKeys("2", int64(10))))
	}
}

func TestWithoutTitles(t *testing.T) {
	t.Parallel()
	table := Table[pathed]{{Title: "NAME", Text: func(p pathed) string { return p.Name }}}
	for n, want := range map[int]string{0: "", 1: "x\n", 3: "x\nx\nx\n"} {
		var out bytes.Buffer
		got, err := table.Print(&out, all(slices.Repeat([]pathed{{Name: "x"}}, n)...), Style{NoHeader: true})
		if err != nil || got != n || out.String() != want {
			t.Errorf("%d rows: %d, %v, %q", n, got, err, out.String())
		}
	}
}
