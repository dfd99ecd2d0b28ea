package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) {
	kubernetes.LogThrough(slog.New(slog.DiscardHandler))
	etcdtest.Main(m)
}

// world is an API server, a gate in front of it, and a source that connects to the gate.
type world struct {
	*kubetest.Server
	gate   *etcdserver.Gate
	tables *local.Cluster
	// operator: the source reads what an operator reads, so neither nodes nor pods.
	operator bool

	mu      sync.Mutex
	trouble string // guarded by mu; what the source reported last
}

// newWorld starts an API server; follow starts a source.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: kubetest.Start(t), gate: etcdserver.NewGate("127.0.0.1:0")}
	t.Cleanup(w.gate.Close)
	w.open(t)
	return w
}

func (w *world) open(t *testing.T) {
	t.Helper()
	waittest.Must(t, w.gate.Open(w.Addr()))
}

// follow runs a source with these options until the end of the test. The source ends before the servers do.
func (w *world) follow(t *testing.T, o kubernetes.Options) {
	t.Helper()
	if o.Kubeconfig == "" {
		o.Kubeconfig = w.Kubeconfig(t, w.gate.Addr(), kubetest.Admin)
	}
	var err error
	if w.tables, err = local.New(statedb.New()); err != nil {
		t.Fatal(err)
	}
	w.operator = o.ServicesOnly
	o.Report = func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.trouble = ""; err != nil {
			w.trouble = err.Error()
		}
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	source, err := kubernetes.New(o, w.tables, log)
	waittest.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- source.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the source ended with: %v", err)
		}
	})
}

// awaitListed waits until every table is complete.
func (w *world) awaitListed(t *testing.T) {
	t.Helper()
	all := []func(context.Context) error{
		w.tables.Services.WaitListed, w.tables.EndpointSlices.WaitListed, w.tables.Namespaces.WaitListed, w.tables.ServiceExports.WaitListed,
		w.tables.CiliumIdentities.WaitListed, w.tables.CiliumNodes.WaitListed, w.tables.CiliumEndpoints.WaitListed, w.tables.CiliumEndpointSlices.WaitListed,
	}
	if !w.operator {
		all = append(all, w.tables.Nodes.WaitListed, w.tables.Pods.WaitListed)
	}
	for _, wait := range all {
		waittest.Must(t, wait(waittest.Context(t)))
	}
}

// wrong is the problem that the source reports; empty without one.
func (w *world) wrong() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble
}

// away reports whether the source reports that the API server does not answer.
func (w *world) away() bool { return strings.Contains(w.wrong(), "the Kubernetes API does not answer") }

// well reports whether the source reports no problem.
func (w *world) well() bool { return w.wrong() == "" }

// until waits for a condition.
func (w *world) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	waittest.Until(t, what, is, w.wrong)
}

// get is the object of a name, nil when there is none.
func get[T any, P local.Object[T]](o *local.Objects[T, P], name string) P {
	one, _ := o.Get(o.Snapshot(), name)
	return one
}

// names returns the names of all objects of a kind, in order.
func names[T any, P local.Object[T]](o *local.Objects[T, P]) (all []string) {
	for one := range o.Table().All(o.Snapshot()) {
		all = append(all, local.Name(one))
	}
	slices.Sort(all)
	return all
}

// revision changes with each change of a table.
func revision[T any, P local.Object[T]](o *local.Objects[T, P]) statedb.Revision {
	return o.Table().Revision(o.Snapshot())
}

// awaitNames waits until the objects of a kind have these names, in order.
func awaitNames[T any, P local.Object[T]](t *testing.T, w *world, o *local.Objects[T, P], want ...string) {
	t.Helper()
	w.until(t, "these are the "+o.Table().Name(), func() bool { return slices.Equal(names(o), want) })
}
