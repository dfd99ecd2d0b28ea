package bugreport

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBugreportNames(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff("node-1.example_x___", fileName("node-1.example/x\x1b ü")); diff != "" {
		t.Error(diff)
	}
}
