package findings

import (
	"errors"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

func (w *world) ignore(ignored ...clustermesh.Ignored) {
	w.mesh.Set(func(is *fakemesh.Facts) { is.Ignored = ignored })
}

// TestTheSurroundingsHaveAHistory: changes of the mesh directory, of the own cluster's description and of the log level
// are recorded as events.
func TestTheSurroundingsHaveAHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.look()
	w.expectEvents("nothing happened")
	step := func(what string, change func(), want ...string) {
		t.Helper()
		change()
		w.look()
		w.expectEvents(what, want...)
	}
	bad := clustermesh.Ignored{File: "/mesh/Bad", Reason: "no name"}
	other := clustermesh.Ignored{File: "/mesh/Bad", Reason: "no contents"}
	unreadable := clustermesh.Ignored{File: "/mesh", Reason: "it does not exist", Directory: true}
	step("a bad file", func() { w.ignore(bad) }, " file-ignored: /mesh/Bad in the mesh directory is ignored: no name")
	step("still", func() { w.ignore(bad) })
	step("for another reason", func() { w.ignore(other) }, " file-ignored: /mesh/Bad in the mesh directory is ignored: no contents")
	step("no directory", func() { w.ignore(unreadable) }, " directory-unreadable: the mesh directory /mesh: it does not exist")
	step("it is back", func() { w.ignore() }, " directory-readable: the mesh directory /mesh can be read again")
	step("a bad file again", func() { w.ignore(bad) }, " file-ignored: ")
	step("it is good", func() { w.ignore() }, " file-taken: /mesh/Bad in the mesh directory is no longer ignored")
	step("mistakes", func() { w.own.Refuse([]string{"a", "b", "c", "d"}) }, " description-broken: not all of the description of the own cluster can be used, the agent keeps the previous data: a; b; c; and 1 more")
	step("the same", func() {})
	step("not even that", func() { w.own.Report(errors.New("dial 10.0.0.1:1234: refused")) }, " description-broken: ")
	step("from another port", func() { w.own.Report(errors.New("dial 10.0.0.1:4321: refused")) })
	step("well", func() { w.own.Report(nil); w.own.Refuse(nil) }, " description-well: ")
	step("the level", func() {
		if err := w.level.Set("debug"); err != nil {
			t.Fatal(err)
		}
	}, " log-level: the level of the log is debug, was info")
	codestest.Reached(t, codes.Agent, w.reached("")...)
	for line, want := range map[string]string{
		"MESH-7001": "level=warning", "MESH-7002": "level=info", "MESH-7003": "level=warning", "MESH-7006": "level=info",
	} {
		for text := range strings.Lines(w.log.String()) {
			if strings.Contains(text, line) && !strings.Contains(text, want) {
				t.Errorf("want %s: %s", want, text)
			}
		}
		if !strings.Contains(w.log.String(), line) {
			t.Errorf("no line with %s:\n%s", line, w.log.String())
		}
	}
}
