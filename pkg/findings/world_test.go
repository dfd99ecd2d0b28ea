package findings

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

// world is a watch with a real cache, real tables and a fake mesh.
type world struct {
	t          testing.TB
	db         *statedb.DB
	mesh       *fakemesh.Mesh
	ips        *ipcache.Cache
	nodes      *nodes.Nodes
	services   *services.Services
	identities *identities.Identities
	own        *local.Cluster
	level      *logging.Level
	log        bytes.Buffer
	applyNodes func([]store.Change[nodes.Node])
	found      *Findings
	watch      *Watch
	now        time.Time
	seen       uint64 // ID of the last event that was compared
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, db: statedb.New(), mesh: new(fakemesh.Mesh), ips: ipcache.New(ipcache.Rules{}), now: epoch}
	var errs [5]error
	var log *slog.Logger
	w.found, errs[0] = New(w.db)
	tables, err := clustermesh.NewTables(w.db, w.ips)
	errs[1] = err
	w.nodes, w.services, w.identities = tables.Nodes, tables.Services, tables.Identities
	w.own, errs[2] = local.New(w.db)
	log, w.level, errs[3] = logging.New(&w.log, "info", "text")
	w.watch, errs[4] = NewWatch(w.found, Params{
		Tables: tables, Reader: w.mesh, Described: w.own, LogLevel: w.level, Log: log,
	})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	w.applyNodes = appliesNodes(t, w)
	return w
}

// look advances the clock by a second and runs a look.
func (w *world) look() {
	w.now = w.now.Add(time.Second)
	w.watch.Look(w.now)
}

// expectEvents compares the kinds and messages of the new events.
func (w *world) expectEvents(what string, want ...string) {
	w.t.Helper()
	var got []string
	for e := range w.found.Events().All(w.db.ReadTxn()) {
		if e.ID > w.seen {
			got = append(got, fmt.Sprintf("%s %s: %s", strings.Join(e.Clusters, ","), e.Kind, e.Message))
			w.seen = e.ID
		}
	}
	for i, text := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], text) {
			w.t.Errorf("%s: events\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			return
		}
	}
	if len(got) > len(want) {
		w.t.Errorf("%s: also %s", what, strings.Join(got[len(want):], "\n  "))
	}
}

func (w *world) expectConflicts(what string, want ...string) {
	w.t.Helper()
	var got []string
	for c := range w.found.Conflicts().All(w.db.ReadTxn()) {
		got = append(got, fmt.Sprintf("%s %s since %ds", c.Key(), strings.Join(c.Clusters, ","), int(c.Since.Sub(epoch).Seconds())))
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: conflicts %q, want %q", what, got, want)
	}
}

func claim(prefix string, id uint32) *ipcache.Entry {
	return ipcache.NewEntry(ipcache.Spec{
		Prefix: netip.MustParsePrefix(prefix), Cluster: &ipcache.Claimant{Name: fmt.Sprintf("c%d", id), ID: id}, Source: wire.SourceClusterMesh,
	})
}

func (w *world) claims(entries ...*ipcache.Entry) {
	for _, e := range entries {
		w.ips.Apply([]ipcache.Op{{New: e}})
	}
}

// reached returns the codes of the events so far whose kinds begin with one of these texts.
func (w *world) reached(kinds ...string) (all []codes.Code) {
	for e := range w.found.Events().All(w.db.ReadTxn()) {
		if slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(e.Kind, kind) }) {
			all = append(all, e.Code)
		}
	}
	return all
}
