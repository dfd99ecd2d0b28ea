package serviceimports

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cilium/statedb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// MaxImports is how many services are imported that the own cluster does not export itself: each takes a
// ClusterIP, of which a network of /20 has 4094. Each cluster, and each namespace of one, has a share of them.
const MaxImports = 4000

// Task is what [Params.Report] calls the controller.
const Task = "service-imports"

const (
	batchPeriod   = 100 * time.Millisecond // how long changes are gathered
	familiesAgain = 10 * time.Minute       // how often the API server is asked for the families of addresses
)

// Writer writes to the Kubernetes API. Its methods are those of kubewrite.Writer.
type Writer interface {
	Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	ApplyStatus(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Try(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Get(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, r schema.GroupVersionResource, namespace, name string, uid types.UID) (bool, error)
	AtOnce() int
}

// Params is what a [Controller] is made of. All but the last ones are required.
type Params struct {
	DB  *statedb.DB // of both tables
	Own wire.ClusterInfo
	// GlobalNamespaces: namespaces that say nothing are global (wire.md §4.5).
	GlobalNamespaces bool
	// Cluster describes the own cluster, with its ServiceImports. Services has what remote clusters export.
	Cluster  *local.Cluster
	Services *services.Services
	// Ready reports whether the mesh directory was read, and each of its clusters, or the sync timeout has
	// passed. Remotes are the clusters of the directory, and those that are being removed.
	Ready   func() bool
	Remotes func() []reconcile.Remote
	Writer  Writer
	// Slices says for which imports EndpointSlices of remote backends are written, too (internal/kube/endpointslices).
	Slices mcs.WhichSlices
	// InstallCRDs: definitions of the kinds are applied where there are none, or older ones.
	InstallCRDs bool
	// Report is called repeatedly with [Task] and the current problem; nil means that there is none.
	Report func(task string, err error)

	// Labels and Annotations are the keys that remote exports may set on own objects.
	Labels, Annotations mcs.Allowed

	MaxImports int                // 0: the constant of this name
	Boundary   *boundary.Boundary // a panic in the work for one service ends that alone; nil: it is not counted
	Metrics    *Metrics           // nil: no metrics are exported
	Log        *slog.Logger       // nil: silence
}

// Controller keeps the objects of the MCS API what they should be, while it runs.
type Controller struct{ Params }

// New returns a controller that does nothing yet.
func New(p Params) *Controller {
	p.MaxImports, p.Metrics = cmp.Or(p.MaxImports, MaxImports), cmp.Or(p.Metrics, NewMetrics())
	if p.Boundary == nil {
		p.Boundary = (*boundary.Boundaries)(nil).Part("mcs")
	}
	p.Writer = counted{p.Writer, p.Metrics}
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	if p.Report == nil {
		p.Report = func(string, error) {}
	}
	return &Controller{p}
}

// Run writes until ctx ends, whose error it returns, and withdraws nothing then. One process of a cluster
// runs it at a time. It may be called again after it has ended.
func (c *Controller) Run(ctx context.Context) error {
	if c.InstallCRDs {
		if err := c.untilDone(ctx, func() error { return c.installCRDs(ctx) }); err != nil {
			return err
		}
	}
	of := c.Cluster
	err := reconcile.WaitReady(
		ctx, c.Ready, of.Services.WaitListed, of.EndpointSlices.WaitListed, of.Namespaces.WaitListed,
		of.ServiceExports.WaitListed, of.ServiceImports.WaitListed, of.WaitWhole,
	)
	if err != nil {
		return err
	}
	t, err := c.follow()
	if err != nil {
		return err
	}
	defer t.close()
	defer c.Metrics.reset()
	if err := c.untilDone(ctx, func() error { return t.askFamilies(ctx, time.Now()) }); err != nil {
		return err
	}
	return reconcile.Run(ctx, c.DB, batchPeriod, &t.Work, t)
}

func (c *Controller) untilDone(ctx context.Context, do func() error) error {
	return waiting.UntilDone(ctx, reconcile.FirstPause, reconcile.LongestPause, do, func(err error, _ time.Duration) {
		c.Report(Task, err)
		c.Log.Warn("Objects of the MCS API cannot be written yet, trying again", "error", err)
	})
}
