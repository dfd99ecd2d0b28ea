package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
)

func TestEveryResourceIsInTheHelp(t *testing.T) {
	t.Parallel()
	var documented []string
	for line := range strings.Lines(resource.Help()) {
		documented = append(documented, strings.Fields(line)[0])
	}
	if diff := cmp.Diff(resource.Names(), documented); diff != "" {
		t.Error(diff)
	}
}
