package endpointslices

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// The bounds on the number of slices, roughly: an API server sends each slice to every watcher of EndpointSlices, on
// each node. A mesh of a thousand Services has a few thousand slices.
const (
	MaxSlices    = 5_000  // of one remote cluster, which has at most half a million endpoints then
	MaxAllSlices = 50_000 // of all together
)

// Task is what [Params.Report] calls the controller.
const Task = "endpoint-slices"

const (
	// batchPeriod is how long changes are gathered (mcs.md C).
	batchPeriod = 500 * time.Millisecond
	// roundSize is how many Services one round works on before the loop gathers the changes made meanwhile.
	roundSize = 200
)

// Writer writes to the Kubernetes API. Its methods are those of kubewrite.Writer.
type Writer interface {
	Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, r schema.GroupVersionResource, namespace, name string, uid types.UID) (bool, error)
	AtOnce() int
}

// Params is what a [Controller] is made of. All but the last ones are required.
type Params struct {
	// DB is the database of both tables.
	DB *statedb.DB
	// Cluster describes the own cluster, Services has the global services, with its own parts.
	Cluster  *local.Cluster
	Services *services.Services
	// Ready reports whether the mesh directory was read, and each of its clusters, or the sync timeout has
	// passed. Remotes are the clusters of the directory, and those that are being removed.
	Ready   func() bool
	Remotes func() []reconcile.Remote
	// Writer writes the slices.
	Writer Writer
	// Report is called repeatedly with [Task] and the current problem; nil means that there is none.
	Report func(task string, err error)

	// Only reports whether a Service may have slices; slices of other Services are deleted. Nil: all may.
	Only func(*corev1.Service) bool
	// OwnNetworks know the own cluster's addresses, which no remote backend in a slice has; nil: it may have any.
	OwnNetworks OwnNetworks

	MaxSlices, MaxAllSlices int                // 0: the constants of these names
	BatchPeriod             time.Duration      // 0: half a second
	Boundary                *boundary.Boundary // a panic in the work for one Service ends that alone; nil: it is not counted
	Metrics                 *Metrics           // nil: no metrics are exported
	Log                     *slog.Logger       // nil: silence
}

// Controller keeps the slices of remote backends what they should be, while it runs.
type Controller struct{ Params }

// New returns a controller that does nothing yet.
func New(p Params) *Controller {
	p.MaxSlices, p.MaxAllSlices = cmp.Or(p.MaxSlices, MaxSlices), cmp.Or(p.MaxAllSlices, MaxAllSlices)
	p.BatchPeriod, p.Metrics = cmp.Or(p.BatchPeriod, batchPeriod), cmp.Or(p.Metrics, NewMetrics())
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	if p.Boundary == nil {
		p.Boundary = (*boundary.Boundaries)(nil).Part("endpointslices")
	}
	if p.Report == nil {
		p.Report = func(string, error) {}
	}
	return &Controller{p}
}

// Run writes slices until ctx ends, whose error it returns, and withdraws nothing then. One process of a cluster runs
// it at a time, as far as leaders are known: if two processes write a slice, the one that keeps running decides its
// contents. It may be called again after it has ended.
//
// It begins once [Params.Ready], with the own cluster's objects listed. While not all clusters were read, at most half
// of the slices are removed in a minute because of remote clusters; removals that are held back are reported, and
// carried out as soon as they are allowed.
func (c *Controller) Run(ctx context.Context) error {
	if err := reconcile.WaitReady(ctx, c.Ready, c.Cluster.Services.WaitListed, c.Cluster.EndpointSlices.WaitListed, c.Cluster.WaitWhole); err != nil {
		return err
	}
	t, err := c.follow()
	if err != nil {
		return err
	}
	defer t.close()
	defer c.Metrics.reset()
	return reconcile.Run(ctx, c.DB, c.BatchPeriod, &t.Work, t)
}
