package agent_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/agent"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// TestThePageOfTheMigration: the page names existing modes, variables and flags.
func TestThePageOfTheMigration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/identity-migration.md")
	agenttest.Must(t, err)
	page := string(text)
	for _, m := range modes.All() {
		if !strings.Contains(page, "| `"+string(m)+"`") {
			t.Errorf("the mode %s is not in the table", m)
		}
	}
	flags := map[string]bool{}
	config.VisitFlags(cli.New(""), func(f *pflag.Flag) { flags[f.Name] = true })
	for _, name := range regexp.MustCompile(`--([a-z][a-z0-9-]+)`).FindAllStringSubmatch(page, -1) {
		if !flags[name[1]] {
			t.Errorf("there is no --%s", name[1])
		}
	}
	for _, name := range regexp.MustCompile(config.EnvPrefix+`[A-Z_]+`).FindAllString(page, -1) {
		if name != config.Variable(config.AllocationMode) {
			t.Errorf("there is no variable %s", name)
		}
	}
}

// TestTheHiveHasNoFlags: every flag is a setting; otherwise a file could not set it.
func TestTheHiveHasNoFlags(t *testing.T) {
	t.Parallel()
	c, err := config.Default().Typed()
	agenttest.Must(t, err)
	flags := pflag.NewFlagSet("hive", pflag.ContinueOnError)
	agent.NewHive(version.Info{}, config.ModeRun, c, new(logging.Level)).RegisterFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) { t.Errorf("the hive has the flag --%s", f.Name) })
}

// TestVariablesOfOthers: the agent warns only of variables that look like a mistake.
func TestVariablesOfOthers(t *testing.T) {
	t.Parallel()
	root := cli.New("")
	got := config.UnknownVariables([]string{
		"HOME=/", "MESH_AGENT_CLUSTER_NAME=a", "MESH_AGENT_CONFIG=x", "MESH_AGENT_SERVER=y", "MESH_AGENT_WAIT=true",
		"MESH_AGENT_PORT=tcp://x", "MESH_AGENT_SERVICE_HOST=x", "MESH_AGENT_X=1", "MESH_AGENT_=2",
	}, root)
	if diff := cmp.Diff([]string{"MESH_AGENT_", "MESH_AGENT_X"}, got); diff != "" {
		t.Error(diff)
	}
}
