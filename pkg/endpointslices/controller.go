package endpointslices

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cilium/statedb"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// How many slices there may be, about: an API server serves each to everybody who follows EndpointSlices,
// on each node. A mesh of a thousand Services has a few thousand.
const (
	MaxSlices    = 5_000  // of one remote cluster, which has at most half a million endpoints then
	MaxAllSlices = 50_000 // of all together
)

// Task is what [Params.Report] calls the controller.
const Task = "endpoint-slices"

const (
	// batchPeriod is how long changes are gathered (mcs.md C).
	batchPeriod = 500 * time.Millisecond
	// lookAgain is how often is looked at what no table tells.
	lookAgain = time.Second
	// roundSize is how many Services are worked on before is looked at what has changed meanwhile.
	roundSize = 200
	// What fails is tried again after pauses that grow.
	firstPause, longestPause = time.Second, 30 * time.Second
)

// Remote is a cluster that has a client file.
type Remote struct {
	Name string
	Read bool // everything of it was listed since the start
}

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
	// Ready tells whether the mesh directory was read, and each of its clusters, or the sync timeout has
	// passed. Remotes are the clusters of the directory, and those that are being removed.
	Ready   func() bool
	Remotes func() []Remote
	// Writer writes the slices.
	Writer Writer
	// Report is called with [Task] and what is wrong, nil when nothing is, again and again.
	Report func(task string, err error)

	MaxSlices, MaxAllSlices int           // 0: the constants of these names
	BatchPeriod             time.Duration // 0: half a second
	Metrics                 *Metrics      // nil: nobody looks at them
	Log                     *slog.Logger  // nil: silence
}

// Controller keeps the slices of remote backends what they should be, while it runs.
type Controller struct{ Params }

// New returns a controller that does nothing yet.
func New(p Params) *Controller {
	p.MaxSlices, p.MaxAllSlices = cmp.Or(p.MaxSlices, MaxSlices), cmp.Or(p.MaxAllSlices, MaxAllSlices)
	p.BatchPeriod, p.Metrics = cmp.Or(p.BatchPeriod, batchPeriod), cmp.Or(p.Metrics, NewMetrics())
	p.Log = cmp.Or(p.Log, slog.New(slog.DiscardHandler))
	if p.Report == nil {
		p.Report = func(string, error) {}
	}
	return &Controller{p}
}

// Run writes slices until ctx ends, whose error it returns, and withdraws nothing then. One process of
// a cluster runs it at a time, as far as leaders are known: a slice that two write becomes what the one
// wants that runs on. It may be called again after it has ended.
//
// It begins once [Params.Ready], with the own cluster's objects listed. While not all clusters were read,
// at most half of the slices are removed in a minute on the word of remotes; what is held back is
// reported, and done as soon as it may be.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	t, err := c.follow()
	if err != nil {
		return err
	}
	defer t.close()
	defer c.Metrics.reset()
	return t.run(ctx)
}

func (c *Controller) waitReady(ctx context.Context) error {
	for _, wait := range []func(context.Context) error{c.Cluster.Services.WaitListed, c.Cluster.EndpointSlices.WaitListed, c.Cluster.WaitWhole} {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	for !c.Ready() {
		if err := waiting.Sleep(ctx, lookAgain); err != nil {
			return err
		}
	}
	return nil
}

// run works until ctx ends.
func (t *term) run(ctx context.Context) error {
	for {
		now := time.Now()
		t.look(now) // before the snapshot, which has everything of the clusters that were read
		txn := t.DB.ReadTxn()
		more := t.gather(txn)
		if len(t.dirty) > 0 {
			t.round(ctx, txn, now)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.tell()
		if len(t.dirty) > 0 {
			continue
		}
		tick, cancel := context.WithTimeout(ctx, lookAgain)
		_, err := more.Wait(tick, t.BatchPeriod)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// held are the slices of ours that a Service has, by name.
type held map[string]*discoveryv1.EndpointSlice
