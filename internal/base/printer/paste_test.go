package printer

import (
	"bytes"
	"iter"
	"strings"
	"testing"
)

func TestPasteable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "",
		"nothing to do":                    "nothing to do",
		"Run 'mesh-agent status'.":         "Run 'mesh-agent status +plain'.",
		"'mesh-agent top', 'mesh-agent a'": "'mesh-agent top +plain', 'mesh-agent a +plain'",
		"Run 'mesh-agent odd'.":            "Run mesh-agent odd 'a b'.",
		"an 'mesh-agent that never ends":   "an 'mesh-agent that never ends",
		"'mesh-agents' and it's":           "'mesh-agents' and it's",
	} {
		got := pasteable(text, func(line string) string {
			if strings.HasSuffix(line, "odd") {
				return line + " 'a b'"
			}
			return line + " +plain"
		})
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := pasteable(text, nil); got != text {
			t.Errorf("with nothing to add: %q", got)
		}
	}
}

// TestCommandsAreNotBroken: a command stays on one line where that has room for it.
func TestCommandsAreNotBroken(t *testing.T) {
	t.Parallel()
	const text = "Then run ('mesh-agent describe cluster c2') or 'mesh-agent get conflicts --socket /run/x'."
	for width, want := range map[int]string{
		30: "Then run ('mesh-agent describe|cluster c2') or 'mesh-agent|get conflicts --socket|/run/x'.",
		44: "Then run ('mesh-agent describe cluster c2')|or|'mesh-agent get conflicts --socket /run/x'.",
		99: text,
	} {
		if got := strings.Join(Wrap(text, width), "|"); got != want {
			t.Errorf("width %d: %s", width, got)
		}
	}
}

// TestTheLastColumnIsKept: a row that is cut loses the columns before it, and fits.
func TestTheLastColumnIsKept(t *testing.T) {
	t.Parallel()
	table := Table[[]string]{
		{Title: "NAME", Text: func(r []string) string { return r[0] }},
		{Title: "STATE", Text: func(r []string) string { return r[1] }},
		{Title: "CHANGE", Text: func(r []string) string { return r[2] }, Kept: true},
	}
	rows := [][]string{{"c2", "long long long long long", ""}, {"c10", "ready", "state failed→ready"}}
	for width, want := range map[int]string{
		0:  "NAME  STATE                     CHANGE\nc2    long long long long long  -\nc10   ready                     state failed→ready\n",
		40: "NAME  STATE                     CHANGE\nc2    long long long long long  -\nc10   ready           state failed→ready\n",
		26: "NAME  STATE         CHANGE\nc2    long long l…  -\nc10   state failed→ready\n",
	} {
		var out bytes.Buffer
		cut := false
		if _, err := table.Print(&out, withoutErrors(rows), Style{Width: width, Cut: &cut}); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, out.String(), want)
		}
	}
}

func withoutErrors[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}
