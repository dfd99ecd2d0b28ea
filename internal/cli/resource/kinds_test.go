package resource

import (
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// TestEveryKindIsShown: each kind of the view has a table, in the same order.
func TestEveryKindIsShown(t *testing.T) {
	t.Parallel()
	if names := Names(); !slices.EqualFunc(names, view.Kinds(), func(name string, k view.Kind) bool { return name == string(k) }) {
		t.Errorf("there are tables of %v, the kinds are %v", names, view.Kinds())
	}
}
