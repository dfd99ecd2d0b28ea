package kubernetes

import (
	"testing"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/local/kubernetes"
)

// contents makes a few objects, and returns how far the tables were when all of
// them were there.
func (w *world) contents(t *testing.T) (before [3]statedb.Revision) {
	t.Helper()
	w.Apply(t, service("kept", 80), service("changed", 80), service("deleted", 80),
		node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"), pod("one", "node-1", "10.1.0.1"))
	w.follow(t, kubernetes.Options{})
	w.awaitListed(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/deleted", "default/kept", "default/kubernetes")
	return w.revisions()
}

func (w *world) revisions() [3]statedb.Revision {
	return [3]statedb.Revision{revision(w.tables.Services), revision(w.tables.Nodes), revision(w.tables.Pods)}
}

func TestAKilledServerComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.contents(t)
	w.Kill(t)
	w.until(t, "the server is known to be away", w.away)
	current := w.tables.State().AsOf
	if current.IsZero() || current.After(time.Now()) {
		t.Errorf("services current at %v", current)
	}
	w.Restart(t)
	w.until(t, "all is well", func() bool { return w.well() && w.tables.State().AsOf.After(current) })
	if after := w.revisions(); after != before {
		t.Errorf("tables at %v, before at %v, although nothing changed", after, before)
	}
	w.Apply(t, service("new", 80))
	w.until(t, "the new service is there", func() bool { return get(w.tables.Services, "default/new") != nil })
}

func TestWhatChangedWhileWeWereCutOffFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.contents(t)
	kept := get(w.tables.Services, "default/kept")
	w.gate.Shut()
	w.until(t, "the server is known to be away", w.away)
	w.Apply(t, service("changed", 81), service("new", 80))
	w.Delete(t, service("deleted", 80))
	if after := w.revisions(); after != before {
		t.Errorf("tables at %v, before at %v, although nobody was heard", after, before)
	}
	w.open(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes", "default/new")
	w.until(t, "all is well", w.well)
	if port := get(w.tables.Services, "default/changed").Spec.Ports[0].Port; port != 81 {
		t.Errorf("port %d", port)
	}
	if get(w.tables.Services, "default/kept") != kept || w.revisions()[1] != before[1] || w.revisions()[2] != before[2] {
		t.Error("what did not change was written again")
	}
}

// TestASilentServerIsNoticed: the connections stay, and nothing comes. Only
// pings, after a while, tell that from a cluster where nothing happens.
func TestASilentServerIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.contents(t)
	w.gate.Freeze()
	w.until(t, "the server is known to be away", w.away)
	w.Delete(t, service("deleted", 80))
	w.open(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes")
	if after := w.revisions(); after[1] != before[1] || after[2] != before[2] {
		t.Error("what did not change was written again")
	}
}

// TestTheDataOfABackupFollows: the API server is back, with the data of yesterday.
func TestTheDataOfABackupFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Apply(t, service("kept", 80), service("changed", 80))
	backup := w.Etcd.Backup(t)
	w.Apply(t, service("changed", 81), service("new", 80))
	w.follow(t, kubernetes.Options{})
	w.awaitListed(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes", "default/new")
	kept := get(w.tables.Services, "default/kept")
	w.Kill(t)
	w.Etcd.RestartFrom(t, backup)
	w.Restart(t)
	awaitNames(t, w, w.tables.Services, "default/changed", "default/kept", "default/kubernetes")
	if port := get(w.tables.Services, "default/changed").Spec.Ports[0].Port; port != 80 {
		t.Errorf("port %d", port)
	}
	if get(w.tables.Services, "default/kept") != kept {
		t.Error("what did not change was written again")
	}
}
