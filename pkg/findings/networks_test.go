package findings

import (
	"fmt"
	"testing"
)

// TestALookIsBounded: nested networks are judged in bounded steps, and all of them in the end.
func TestALookIsBounded(t *testing.T) {
	t.Parallel()
	const inner = 50
	d := newNetworks()
	d.limit = inner
	for bits := 8; bits < 16; bits++ { // each network contains all of the others
		d.set(node(2, fmt.Sprint("outer-", bits), fmt.Sprintf("10.0.0.0/%d", bits)).(aNode).Node, false)
	}
	for i := range inner {
		d.set(node(3, fmt.Sprint("n", i), fmt.Sprintf("10.0.%d.0/24", i)).(aNode).Node, false)
	}
	looks := 0
	for ; len(d.touched) > 0; looks++ {
		var v verdicts
		if d.look(&v); d.steps > 3*(inner+8) {
			t.Fatalf("a look took %d steps", d.steps)
		}
	}
	if looks < 3 || len(d.conflicts.listed) != 8 {
		t.Errorf("%d conflicts after %d looks, want 8 after several", len(d.conflicts.listed), looks)
	}
}
