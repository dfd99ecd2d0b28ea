package view

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is the present time of the views in tests.
var epoch = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

// fakeMesh is a mesh with the state that the test sets.
type fakeMesh struct {
	clustermesh.None
	clusters []remotecluster.Status
	waits    int // how often it reports that it is not ready
}

func (m *fakeMesh) Clusters() []remotecluster.Status { return m.clusters }

func (m *fakeMesh) Ready() (bool, map[string]string) {
	m.waits--
	return m.waits < 0, map[string]string{"c2": "connecting"}
}

// fixture is a view of real tables and a fake mesh.
type fixture struct {
	*View
	mesh  *fakeMesh
	nodes *nodes.Nodes
	ips   *ipcache.Cache
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	tables, err := NewTables(statedb.New(), ipcache.New(ipcache.Rules{}))
	waittest.Must(t, err)
	f := &fixture{mesh: new(fakeMesh), nodes: tables.Nodes, ips: tables.IPs}
	if f.View, err = New(Params{Tables: tables, Reader: f.mesh, Now: func() time.Time { return epoch }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func readyCluster(name string, id uint32) remotecluster.Status {
	c := remotecluster.Status{
		Name: name, ID: id, State: remotecluster.Ready, Ready: true, Connected: true, Families: make(map[wire.Resource]remotecluster.FamilyStatus),
		LastEvent: epoch.Add(-2 * time.Second), LastSuccess: epoch.Add(-time.Second),
		Forecast: &disconnect.Forecast{Since: epoch.Add(-time.Hour), Evidence: disconnect.Evidence{AsOf: epoch.Add(-time.Second), Heartbeat: epoch.Add(-time.Minute)}},
	}
	for i, r := range wire.Resources() {
		c.Families[r] = remotecluster.FamilyStatus{
			Synced: true, Count: i, Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: epoch.Add(-time.Second)},
		}
	}
	return c
}

func connectingCluster(name string) remotecluster.Status {
	return remotecluster.Status{Name: name, State: remotecluster.Connecting, Message: "connection refused"}
}

func become(old, now *nodes.Node) []store.Change[nodes.Node] {
	return []store.Change[nodes.Node]{{Name: "n", Old: old, New: now}}
}

// TestChangesHaveBeforeAndAfter: this holds also where intermediate changes are omitted, and a stream continues after
// the token of any of its events.
func TestChangesHaveBeforeAndAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	boot := func(id string) *nodes.Node { return &nodes.Node{Cluster: "c2", Name: "n", BootID: id} }
	var token string
	read := func(want ...string) {
		t.Helper()
		for e, err := range f.Changes(t.Context(), token, Nodes) {
			waittest.Must(t, err)
			got := string(e.Type)
			for _, object := range []any{e.Before, e.Object} {
				if n, is := object.(*nodes.Node); is {
					got += " " + n.BootID
				} else {
					got += " -"
				}
			}
			token = e.Token()
			if got != want[0] {
				t.Fatalf("came %q, want %q", got, want[0])
			}
			if want = want[1:]; len(want) == 0 {
				return
			}
		}
	}
	f.nodes.Apply(become(nil, boot("1")))
	read("upsert - 1", "synced - -")
	f.nodes.Apply(become(nil, boot("2")))
	f.Position()
	f.nodes.Apply(become(nil, boot("3")))
	read("upsert 1 3")
	f.nodes.Apply(become(boot("3"), nil))
	read("delete 3 3")
	token = "of another process"
	read("reset - -", "synced - -")
}

func TestWaitReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mesh.waits = 2
	if err := f.WaitReady(t.Context()); err != nil {
		t.Error(err)
	}
	f.mesh.waits = 1000
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := f.WaitReady(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "not ready: c2: connecting: context deadline exceeded" {
		t.Errorf("%v", err)
	}
}
