package codes_test

import (
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var update = flag.Bool("update", false, "write constants.go and docs/codes.md")

// TestGenerated compares the files generated from the registry with those in the tree, and writes them with -update.
func TestGenerated(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"constants.go": constants(t),
		filepath.Join("..", "..", "docs", "codes.md"): document(),
	} {
		if *update {
			waittest.Must(t, os.WriteFile(file, []byte(want), 0o644))
		}
		got, err := os.ReadFile(file)
		waittest.Must(t, err)
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s is not that of codes.txt (go generate ./pkg/codes writes it):\n%s", file, d)
		}
	}
}

// constants returns the content of constants.go.
func constants(t *testing.T) string {
	var b strings.Builder
	b.WriteString("// Code generated from codes.txt by go generate; DO NOT EDIT.\n\npackage codes\n")
	area := byte(0)
	for _, e := range codes.All() {
		if digit := areaOf(e); digit != area {
			if area != 0 {
				b.WriteString(")\n")
			}
			area = digit
			_, title, _ := strings.Cut(areaTitle(area), ": ")
			fmt.Fprintf(&b, "\n// %s.\nconst (\n", title)
		}
		fmt.Fprintf(&b, "%s Code = %q // %s\n", e.Name, e.Code, e.Title)
	}
	b.WriteString(")\n")
	source, err := format.Source([]byte(b.String()))
	waittest.Must(t, err)
	return string(source)
}

// document returns the content of docs/codes.md.
func document() string {
	var b strings.Builder
	b.WriteString(`# Codes

Every finding has a code, and the code never changes its meaning. The log, ` + "`status`" + `, conflicts, events, verdicts and
checks show the code. ` + "`mesh-agent explain CODE`" + ` prints the text of one code. This page is generated from the registry,
` + "`pkg/codes`" + ` (` + "`go test ./pkg/codes -update`" + `).
`)
	area := byte(0)
	for _, e := range codes.All() {
		if digit := areaOf(e); digit != area {
			area = digit
			fmt.Fprintf(&b, "\n## %s\n", areaTitle(area))
		}
		fmt.Fprintf(&b, "\n### %s: %s\n\n*%s.* %s\n\n%s\n", e.Code, e.Title, e.Severity, e.Cause, e.Remedy)
	}
	return b.String()
}

func areaOf(e codes.Entry) byte { return e.Code[len("MESH-")] }

func areaTitle(digit byte) string {
	titles := []string{"Clusters", "Services", "Addresses", "Identities", "Nodes", "Configurations", "The agent"}
	return fmt.Sprintf("%c: %s", digit, titles[digit-'1'])
}
