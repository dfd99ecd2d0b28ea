package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// unproved are the alerts that only promtool tests.
func unproved() []string {
	return []string{
		"MeshInternalError", // it needs an error in the agent's code
	}
}

// TestEveryAlertIsProved: each alert of the rules fires in one of these tests.
func TestEveryAlertIsProved(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	text, err := os.ReadFile(filepath.Join(folder, "rules.yaml"))
	must(t, err)
	must(t, yaml.Unmarshal(text, &file))
	proved := unproved()
	for _, alerts := range [][]string{
		readingAlerts(), nameAlerts(), pathAlerts(), processAlerts(), servingAlerts(), refusingAlerts(), roomAlerts(), writingAlerts(), fullAlerts(), rightsAlerts(), kubernetesAlerts(), listenerAlerts(),
	} {
		for _, a := range alerts {
			name, _, _ := strings.Cut(a, " ")
			proved = append(proved, name)
		}
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if !slices.Contains(proved, r.Alert) {
				t.Errorf("no test shows that %s fires", r.Alert)
			}
		}
	}
}
