package resource

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryResourceIsInTheHelp(t *testing.T) {
	t.Parallel()
	var documented []string
	for line := range strings.Lines(Help()) {
		documented = append(documented, strings.Fields(line)[0])
	}
	if diff := cmp.Diff(Names(), documented); diff != "" {
		t.Error(diff)
	}
}
