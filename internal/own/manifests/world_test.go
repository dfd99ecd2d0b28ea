package manifests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var must = waittest.Must

// service is a manifest of a Service; a label makes one differ from another.
func service(name, label string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, labels: {l: %q}}\n---\n", name, label)
}

// running is a source at work on a directory.
type running struct {
	t       *testing.T
	dir     string
	db      *statedb.DB
	cluster *local.Cluster
	source  *Source
	log     *waittest.Output
	looks   chan struct{}         // one for a look, unless one is waiting
	err     atomic.Pointer[error] // that of the last look
}

func run(t *testing.T, dir string) *running {
	t.Helper()
	r := &running{t: t, dir: dir, db: statedb.New(), log: new(waittest.Output), looks: make(chan struct{}, 1)}
	var err error
	r.cluster, err = local.New(r.db)
	must(t, err)
	r.source = New(dir, r.cluster, slog.New(slog.NewTextHandler(r.log, nil)))
	r.source.dir.Unchanged, r.source.dir.Confirm = 10*time.Millisecond, 200*time.Millisecond
	r.source.dir.Rescan = time.Hour // events alone must do
	r.source.Report = func(err error) {
		r.err.Store(&err)
		select {
		case r.looks <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
	return r
}

func (r *running) write(name, text string) {
	r.t.Helper()
	must(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

// replace writes a file as most programs do: it writes a temporary file in the same directory, and renames it.
func (r *running) replace(name, text string) {
	r.t.Helper()
	r.write(".tmp", text)
	must(r.t, os.Rename(filepath.Join(r.dir, ".tmp"), filepath.Join(r.dir, name)))
}

// services are the names and labels of the Services in the table.
func (r *running) services() string {
	var out []string
	for s := range r.cluster.Services.Table().All(r.db.ReadTxn()) {
		out = append(out, s.Name+"="+s.Labels["l"])
	}
	return strings.Join(out, " ")
}

// until waits for a condition, which is looked at after each look at the directory.
func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	end := waittest.Context(r.t).Done()
	for !ok() {
		_, changed := r.cluster.Services.Table().AllWatch(r.db.ReadTxn())
		select {
		case <-r.looks:
		case <-changed:
		case <-end:
			r.t.Fatalf("waited in vain for %s; services %q, refused %q", what, r.services(), r.cluster.Refused())
		}
	}
}

func (r *running) untilServices(want string) {
	r.t.Helper()
	r.until(want, func() bool { return r.services() == want })
}

// untilProblems waits until there are just these mistakes, by parts of their texts.
func (r *running) untilProblems(parts ...string) {
	r.t.Helper()
	r.until(fmt.Sprintf("the problems %q", parts), func() bool {
		return slices.EqualFunc(r.cluster.Refused(), parts, strings.Contains)
	})
}

// isWhole reports whether the description is.
func (r *running) isWhole() bool {
	whole, _ := r.cluster.IsWhole()
	return whole
}

// source is one that does not run.
func source(t *testing.T, dir string) *Source {
	t.Helper()
	cluster, err := local.New(statedb.New())
	must(t, err)
	return New(dir, cluster, slog.New(slog.DiscardHandler))
}
