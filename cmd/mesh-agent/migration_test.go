package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
)

// TestThePageOfTheMigration names modes, variables and flags as they are.
func TestThePageOfTheMigration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/identity-migration.md")
	must(t, err)
	page := string(text)
	for _, m := range modes.All() {
		if !strings.Contains(page, "| `"+string(m)+"`") {
			t.Errorf("the mode %s is not in the table", m)
		}
	}
	flags := map[string]bool{}
	visitFlags(newRootCommand(newRunCommand()), func(f *pflag.Flag) { flags[f.Name] = true })
	for _, name := range regexp.MustCompile(`--([a-z][a-z0-9-]+)`).FindAllStringSubmatch(page, -1) {
		if !flags[name[1]] {
			t.Errorf("there is no --%s", name[1])
		}
	}
	for _, name := range regexp.MustCompile(envPrefix+`[A-Z_]+`).FindAllString(page, -1) {
		if name != variable(allocationMode) {
			t.Errorf("there is no variable %s", name)
		}
	}
}
