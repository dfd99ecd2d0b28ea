package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

type fruit struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Notes []string `json:"notes"`
}

func fruitTable() Table[fruit] {
	return Table[fruit]{
		{Title: "NAME", Text: func(f fruit) string { return f.Name }, Color: func(fruit) Color { return Green }},
		{Title: "COUNT", Text: func(f fruit) string { return fmt.Sprint(f.Count) }, Right: true},
		{Title: "NOTES", Text: func(f fruit) string { return strings.Join(f.Notes, ",") }, Wide: true},
		{Title: "LAST", Text: func(f fruit) string { return strings.Repeat("x", f.Count) }},
	}
}

func items(fruits ...fruit) iter.Seq2[fruit, error] {
	return func(yield func(fruit, error) bool) {
		for _, f := range fruits {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func broken(after ...fruit) iter.Seq2[fruit, error] {
	return func(yield func(fruit, error) bool) {
		for f := range items(after...) {
			if !yield(f, nil) {
				return
			}
		}
		yield(fruit{}, io.ErrUnexpectedEOF)
	}
}

// TestCutIsReported: only where something is missing.
func TestCutIsReported(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]bool{0: false, 31: false, 30: true, 18: true, 1: true} {
		cut := false
		var out strings.Builder
		_, err := Table[fruit]{
			{Title: "NAME", Text: func(f fruit) string { return f.Name }}, {Title: "AGAIN", Text: func(f fruit) string { return f.Name }}, {Title: "THIRD", Text: func(f fruit) string { return f.Name }},
		}.Print(&out, items(fruit{Name: "ninechars"}, fruit{Name: "short"}), Style{Width: width, Cut: &cut})
		if err != nil || cut != want {
			t.Errorf("%d columns: cut is %v, want %v\n%s", width, cut, want, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(line)) - 1; width >= 18 && n > width {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	apple, pear := fruit{Name: "apple", Count: 3}, fruit{Name: "größer", Count: 14, Notes: []string{"a", "b"}}
	tests := map[string]struct {
		items iter.Seq2[fruit, error]
		style Style
		want  string
	}{
		"nothing": {items(), Style{}, ""},
		"rows": {items(apple, pear), Style{}, "" +
			"NAME    COUNT  LAST\n" +
			"apple       3  xxx\n" +
			"größer     14  xxxxxxxxxxxxxx\n"},
		"wide": {items(apple, pear), Style{Wide: true}, "" +
			"NAME    COUNT  NOTES  LAST\n" +
			"apple       3  -      xxx\n" +
			"größer     14  a,b    xxxxxxxxxxxxxx\n"},
		"a narrow terminal cuts the last column": {items(pear), Style{Width: 25}, "" +
			"NAME    COUNT  LAST\n" +
			"größer     14  xxxxxxxxx…\n"},
		"a narrow terminal cuts all that is beyond": {items(apple, pear), Style{Width: 18, Cut: new(bool)}, "" +
			"NAME    COUNT\n" +
			"apple       3\n" +
			"größer     14\n"},
		"where a column has room, its beginning stays": {items(apple, pear), Style{Width: 26, Cut: new(bool)}, "" +
			"NAME    COUNT  LAST\n" +
			"apple       3  xxx\n" +
			"größer     14  xxxxxxxxxx…\n"},
		"colours are not counted": {items(apple, pear), Style{Color: true}, "" +
			"NAME    COUNT  LAST\n" +
			"\x1b[32mapple\x1b[0m       3  xxx\n" +
			"\x1b[32mgrößer\x1b[0m     14  xxxxxxxxxxxxxx\n"},
		"nobody moves the cursor": {items(fruit{Name: "a\x1b[2Jb\nc\xff"}), Style{}, "" +
			"NAME              COUNT  LAST\n" +
			`a\x1b[2Jb\nc\xff      0  -` + "\n"},
		"what came before an error is seen": {broken(apple), Style{}, "" +
			"NAME   COUNT  LAST\n" +
			"apple      3  xxx\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			_, err := fruitTable().Print(&out, test.items, test.style)
			if (err != nil) != strings.Contains(name, "error") {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLongTableIsStreamed: the rows behind the sample are written as they come,
// below the same header, even when one is wider than its column.
func TestLongTableIsStreamed(t *testing.T) {
	t.Parallel()
	const n = 20 * sampleRows
	var out bytes.Buffer
	early := 0
	rows := func(yield func(fruit, error) bool) {
		for i := range n {
			if i == n-1 {
				early = out.Len()
				yield(fruit{Name: strings.Repeat("wide", 10), Count: 1}, nil)
				return
			}
			if !yield(fruit{Name: "f", Count: 1}, nil) {
				return
			}
		}
	}
	count, err := fruitTable().Print(&out, rows, Style{})
	if err != nil || count != n {
		t.Fatalf("%d rows: %v", count, err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != n+1 || early < out.Len()/2 {
		t.Errorf("%d lines, %d of %d bytes were written before the last row", len(lines), early, out.Len())
	}
	if want := strings.Repeat("wide", 10) + "      1  x"; lines[n] != want {
		t.Errorf("last line %q, want %q", lines[n], want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrorsAreReported(t *testing.T) {
	t.Parallel()
	many := make([]fruit, 20*sampleRows)
	read := 0
	counting := func(yield func(fruit, error) bool) {
		for f := range items(many...) {
			read++
			if !yield(f, nil) {
				return
			}
		}
	}
	for name, write := range map[string]func(iter.Seq2[fruit, error]) error{
		"table": func(i iter.Seq2[fruit, error]) error {
			_, err := fruitTable().Print(fullDisk{}, i, Style{})
			return err
		},
		"lines": func(i iter.Seq2[fruit, error]) error {
			_, err := Lines(fullDisk{}, i, func(fruit) string { return "a name of some length" })
			return err
		},
		"json": func(i iter.Seq2[fruit, error]) error {
			_, err := Structured(fullDisk{}, NewFormat(JSON), Listing[fruit]{Items: i, Next: func() string { return "" }})
			return err
		},
	} {
		read = 0
		if err := write(counting); err == nil || err.Error() != "disk full" {
			t.Errorf("%s: %v", name, err)
		}
		if read == len(many) {
			t.Errorf("%s: all was read for nobody", name)
		}
		if err := write(items(many[:1]...)); err == nil {
			t.Errorf("%s of one: no error", name)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	n, err := Lines(&out, items(fruit{Name: "a"}, fruit{Name: "b\n"}), func(f fruit) string { return f.Name })
	if n != 2 || err != nil || out.String() != "a\nb\\n\n" {
		t.Errorf("%d %v %q", n, err, out.String())
	}
	if _, err := Lines(&out, broken(), func(f fruit) string { return f.Name }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// object is what a list is to look like as a whole.
type object struct {
	Revision uint64  `json:"revision"`
	Items    []fruit `json:"items"`
	Next     string  `json:"next"`
}

func TestStructured(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		format string
		fruits []fruit
		want   string
	}{
		"json": {JSON, []fruit{{Name: "<a>", Notes: []string{}}, {Name: "b", Count: 2, Notes: []string{"x"}}}, `{
  "revision": 7,
  "items": [
    {
      "name": "<a>",
      "count": 0,
      "notes": []
    },
    {
      "name": "b",
      "count": 2,
      "notes": [
        "x"
      ]
    }
  ],
  "next": "more"
}
`},
		"empty json": {JSON, nil, "{\n  \"revision\": 7,\n  \"items\": [],\n  \"next\": \"more\"\n}\n"},
		"yaml": {YAML, []fruit{{Name: "a", Notes: []string{}}, {Name: "b", Count: 2, Notes: []string{"x"}}}, `revision: 7
items:
- count: 0
  name: a
  notes: []
- count: 2
  name: b
  notes:
  - x
next: "more"
`},
		"empty yaml": {YAML, nil, "revision: 7\nitems: []\nnext: \"more\"\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			l := Listing[fruit]{Revision: 7, Items: items(test.fruits...), Next: func() string { return "more" }}
			n, err := Structured(&out, NewFormat(test.format), l)
			if n != len(test.fruits) || err != nil {
				t.Errorf("%d items: %v", n, err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStructuredIsTheObject: written item by item, the list reads back as the object that it stands for, with all
// kinds of texts in it.
func TestStructuredIsTheObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := object{Revision: rapid.Uint64Max(1<<53).Draw(t, "revision"), Items: []fruit{}, Next: rapid.StringMatching(`[A-Za-z0-9_-]{0,9}`).Draw(t, "next")}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			want.Items = append(want.Items, fruit{
				Name:  rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \n:#'"-]{0,12}`)).Draw(t, "name"),
				Count: rapid.IntRange(-9, 9).Draw(t, "count"),
				Notes: rapid.SliceOfN(rapid.StringMatching(`([a-z \n]|- ){0,9}`), 0, 2).Draw(t, "notes"),
			})
		}
		for format, unmarshal := range map[string]func([]byte, any) error{
			JSON: json.Unmarshal,
			YAML: func(text []byte, v any) error { return yaml.Unmarshal(text, v) },
		} {
			var out bytes.Buffer
			l := Listing[fruit]{Revision: want.Revision, Items: items(want.Items...), Next: func() string { return want.Next }}
			if _, err := Structured(&out, NewFormat(format), l); err != nil {
				t.Fatal(err)
			}
			var got object
			if err := unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v\n%s", format, err, &out)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: %s\n%s", format, diff, &out)
			}
		}
	})
}

func TestStructuredStopsAtAnError(t *testing.T) {
	t.Parallel()
	_, err := Structured(io.Discard, NewFormat(JSON), Listing[fruit]{Items: broken(fruit{}), Next: func() string { return "" }})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	f := NewFormat(Plain, JSON, YAML)
	if f.String() != Plain || f.Structured() || f.Type() != "table|json|yaml" {
		t.Errorf("%+v", f)
	}
	if err := f.Set(YAML); err != nil || !f.Structured() {
		t.Errorf("%v %+v", err, f)
	}
	if err := f.Set("xml"); err == nil || f.String() != YAML {
		t.Errorf("%v %+v", err, f)
	}
	var out bytes.Buffer
	if err := f.Object(&out, fruit{Name: "a"}); err != nil || out.String() != "count: 0\nname: a\nnotes: null\n" {
		t.Errorf("%v %q", err, out.String())
	}
}
