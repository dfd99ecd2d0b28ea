package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cilium/statedb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/internal/kubetest"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/local/kubernetes"
)

func TestMain(m *testing.M) {
	kubernetes.LogThrough(slog.New(slog.DiscardHandler))
	etcdtest.Main(m)
}

// world is an API server, a gate before it, and a source that knows of the gate.
type world struct {
	*kubetest.Server
	gate   *etcdserver.Gate
	tables *local.Cluster
	source *kubernetes.Source
}

// newWorld starts an API server. A source comes with follow.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: kubetest.Start(t), gate: etcdserver.NewGate("127.0.0.1:0")}
	t.Cleanup(w.gate.Close)
	w.open(t)
	return w
}

func (w *world) open(t *testing.T) {
	t.Helper()
	if err := w.gate.Open(w.Addr()); err != nil {
		t.Fatal(err)
	}
}

// follow runs a source with these options until the end of the test. The source
// has its end behind it before the servers have theirs.
func (w *world) follow(t *testing.T, o kubernetes.Options) {
	t.Helper()
	if o.Kubeconfig == "" {
		o.Kubeconfig = w.Kubeconfig(t, w.gate.Addr(), kubetest.Admin)
	}
	var err error
	if w.tables, err = local.New(statedb.New()); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	if w.source, err = kubernetes.New(o, w.tables, log); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.source.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		asked := time.Now()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the source ended with: %v", err)
		}
		if took := time.Since(asked); took > 8*time.Second {
			t.Errorf("the source took %v to end", took)
		}
	})
}

// awaitListed waits until every table is complete.
func (w *world) awaitListed(t *testing.T) {
	t.Helper()
	w.until(t, "everything is listed", func() bool {
		return !slices.ContainsFunc(w.source.Status().Kinds, func(k kubernetes.KindStatus) bool { return !k.Listed })
	})
}

// until waits for a condition.
func (w *world) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	waittest.Until(t, what, is, func() string {
		if w.source == nil {
			return "nothing is read"
		}
		return fmt.Sprintf("%+v", w.source.Status())
	})
}

// kind is the status of one kind.
func (w *world) kind(resource string) kubernetes.KindStatus {
	kinds := w.source.Status().Kinds
	return kinds[slices.IndexFunc(kinds, func(k kubernetes.KindStatus) bool { return k.Resource == resource })]
}

// object is a pointer to an object of one kind.
type object[T any] interface {
	*T
	metav1.Object
}

// get is the object of a name, nil when there is none.
func get[T any, P object[T]](o *local.Objects[T, P], name string) P {
	one, _ := o.Get(o.Snapshot(), name)
	return one
}

// names are those of all objects of a kind, in order.
func names[T any, P object[T]](o *local.Objects[T, P]) (all []string) {
	for one := range o.Table().All(o.Snapshot()) {
		all = append(all, local.Name(one))
	}
	slices.Sort(all)
	return all
}

// revision moves with each change of a table.
func revision[T any, P object[T]](o *local.Objects[T, P]) statedb.Revision {
	return o.Table().Revision(o.Snapshot())
}

// awaitNames waits until the objects of a kind have these names, in order.
func awaitNames[T any, P object[T]](t *testing.T, w *world, o *local.Objects[T, P], want ...string) {
	t.Helper()
	w.until(t, "these are the "+o.Table().Name(), func() bool { return slices.Equal(names(o), want) })
}
