// Package codestest checks that every code of the registry is reached.
package codestest

import (
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Reached fails the test unless the codes that the cases of a test have reached are exactly those of the owner.
func Reached(t *testing.T, owner codes.Owner, reached ...codes.Code) {
	t.Helper()
	var want []codes.Code
	for _, e := range codes.All() {
		if e.Owner != owner {
			continue
		}
		want = append(want, e.Code)
		if !slices.Contains(reached, e.Code) {
			t.Errorf("no case leads to %s: %s", e.Code, e.Title)
		}
	}
	for _, c := range reached {
		if !slices.Contains(want, c) {
			t.Errorf("%q is none of the codes of %s", c, owner)
		}
	}
}
