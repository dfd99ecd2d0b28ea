package mirror

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestADirectoryThatCannotBeReadIsNoEmptyOne: a mirror whose mount is missing, at its start or after a change of the
// leader, withdraws nothing and is not ready, however long it lasts. When the directory exists, clusters without a file
// are removed.
func TestADirectoryThatCannotBeReadIsNoEmptyOne(t *testing.T) {
	t.Parallel()
	w, a, first := copying(t)
	c := w.etcd.Client(t)
	gone := wire.IPs.Key("gone", true, "10.0.0.1")
	_, err := c.Put(t.Context(), gone, "x")
	must(t, err)
	first.stop()
	before := w.copied()

	missing := filepath.Join(t.TempDir(), "missing")
	var looks atomic.Int64 // that have failed
	m := w.mirror(func(p *Params) {
		p.Directory, p.DrainDelay, p.SyncTimeout, p.ReadyTimeout = missing, time.Millisecond, time.Millisecond, time.Millisecond
		p.Report = func(err error) {
			if err != nil {
				looks.Add(1)
			}
		}
	})
	waittest.Until(t, "it to lead", m.Leads)
	waittest.Until(t, "several looks", func() bool { return looks.Load() > 2 })
	_, reasons := m.Ready()
	if !strings.Contains(reasons["mesh directory"], "does not exist") {
		t.Errorf("not ready because of %v", reasons)
	}
	if ready, _ := m.Ready(); ready {
		t.Error("ready before the directory was read")
	}
	if now := w.copied(); len(now) != len(before) {
		t.Errorf("%d keys are left of %d", len(now), len(before))
	}
	must(t, os.Mkdir(missing, 0o700))
	must(t, a.WriteClientFiles(missing))
	waittest.Until(t, "what has no file to go", func() bool { _, there := w.copied()[gone]; return !there })
	waittest.Until(t, "readiness", func() bool { ready, _ := m.Ready(); return ready })
	w.equal(a)
}
