package kvstore

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSelectionIsARange: the selected keys are those in the range of the request to etcd.
func TestSelectionIsARange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[/0ab\xff]{1,4}`)
		selection, key := text.Draw(t, "selection"), text.Draw(t, "key")
		end := SelectionEnd(selection)
		inRange := key == selection
		if end != "" {
			inRange = selection <= key && key < end
		}
		if got := Selects(selection, key); got != inRange {
			t.Fatalf("selected=%t, in [%q, %q): %t", got, selection, end, inRange)
		}
	})
}
