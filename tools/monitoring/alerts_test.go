package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// alerts are all alerts, without their groups.
func alerts() (all []Alert) {
	for _, g := range Alerts() {
		all = append(all, g.Alerts...)
	}
	return all
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	waittest.Must(t, err)
	return string(text)
}

// TestAlertsAreWhole: each has a name of its own, sentences, and an existing runbook.
func TestAlertsAreWhole(t *testing.T) {
	t.Parallel()
	headings := make(map[string]bool)
	for line := range strings.Lines(read(t, "docs", "codes.md")) {
		if heading, is := strings.CutPrefix(strings.TrimSpace(line), "### "); is {
			headings[anchor(heading)] = true
		}
	}
	seen := make(map[string]bool)
	for _, a := range alerts() {
		if !regexp.MustCompile(`^Mesh[A-Z]\w+$`).MatchString(a.Name) || seen[a.Name] {
			t.Errorf("%q is no name, or that of two alerts", a.Name)
		}
		seen[a.Name] = true
		lasts, err := time.ParseDuration(a.For)
		if err != nil || a.Severity == Critical && lasts < 5*time.Minute {
			t.Errorf("%s: for %q is no time, or one that wakes somebody at each rolling restart", a.Name, a.For)
		}
		for _, text := range []string{a.Summary, a.Description} {
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
				t.Errorf("%s: %q is no sentence on one line", a.Name, text)
			}
		}
		file, at, _ := strings.Cut(Runbook(a.Code), "#")
		if file != Runbooks || !headings[at] {
			t.Errorf("%s: docs/codes.md has no #%s", a.Name, at)
		}
	}
}

// TestEveryCodeOfAlertsIsReached: each code that only Prometheus can find has an alert, and each alert fires in a test
// of the rules (deploy/monitoring/rules_test.yaml) and is quiet in it, too.
func TestEveryCodeOfAlertsIsReached(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			AlertRules []struct {
				Name     string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	waittest.Must(t, yaml.Unmarshal([]byte(read(t, "deploy", "monitoring", "rules_test.yaml")), &file))
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, test := range file.Tests {
		for _, r := range test.AlertRules {
			fires[r.Name] = fires[r.Name] || len(r.Expected) > 0
			quiet[r.Name] = quiet[r.Name] || len(r.Expected) == 0
		}
	}
	var reached []codes.Code
	for _, a := range alerts() {
		if !fires[a.Name] || !quiet[a.Name] {
			t.Errorf("rules_test.yaml does not show %s as firing (%t) and as quiet (%t)", a.Name, fires[a.Name], quiet[a.Name])
		}
		if e, _ := codes.Find(string(a.Code)); e.Owner == codes.Alerts && fires[a.Name] && !slices.Contains(reached, a.Code) {
			reached = append(reached, a.Code)
		}
	}
	codestest.Reached(t, codes.Alerts, reached...)
}

// TestTheDocumentHasEveryAlert: in its table, with severity, time and code.
func TestTheDocumentHasEveryAlert(t *testing.T) {
	t.Parallel()
	text := read(t, "docs", "monitoring.md")
	for _, a := range alerts() {
		_, at, _ := strings.Cut(Runbook(a.Code), "#")
		row := "| `" + a.Name + "` | " + string(a.Severity) + " | " + a.For + " | "
		line := text[max(0, strings.Index(text, row)):]
		line, _, _ = strings.Cut(line, "\n")
		if !strings.HasPrefix(line, row) || !strings.HasSuffix(line, " | ["+string(a.Code)+"](codes.md#"+at+") |") {
			t.Errorf("docs/monitoring.md has no row %s... | [%s](codes.md#%s) |", row, a.Code, at)
		}
	}
}
