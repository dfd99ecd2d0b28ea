package serviceimports

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cilium/statedb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// MaxImports is how many services are imported that the own cluster does not export itself: each takes a
// ClusterIP, of which a network of /20 has 4094.
const MaxImports = 4000

// Task is what [Params.Report] calls the controller.
const Task = "service-imports"

const (
	batchPeriod   = 100 * time.Millisecond // how long changes are gathered
	lookAgain     = time.Second            // how often is looked at what no table tells
	familiesAgain = 10 * time.Minute       // how often the API server is asked for the families of addresses
	// What fails is tried again after pauses that grow.
	firstPause, longestPause = time.Second, 30 * time.Second
)

// Remote is a cluster that has a client file.
type Remote struct {
	Name string
	Read bool // its exports were listed since the start, or it has none
}

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
	// Ready tells whether the mesh directory was read, and each of its clusters, or the sync timeout has
	// passed. Remotes are the clusters of the directory, and those that are being removed.
	Ready   func() bool
	Remotes func() []Remote
	Writer  Writer
	// Slices: EndpointSlices of remote backends are written, too (pkg/endpointslices).
	Slices bool
	// InstallCRDs: definitions of the kinds are applied where there are none, or older ones.
	InstallCRDs bool
	// Report is called with [Task] and what is wrong, nil when nothing is, again and again.
	Report func(task string, err error)

	MaxImports int          // 0: the constant of this name
	Log        *slog.Logger // nil: silence
}

// Controller keeps the objects of the MCS API what they should be, while it runs.
type Controller struct{ Params }

// New returns a controller that does nothing yet.
func New(p Params) *Controller {
	p.MaxImports = cmp.Or(p.MaxImports, MaxImports)
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
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	t, err := c.follow()
	if err != nil {
		return err
	}
	defer t.close()
	if err := c.untilDone(ctx, func() error { return t.askFamilies(ctx, time.Now()) }); err != nil {
		return err
	}
	return t.run(ctx)
}

// untilDone does something again and again until it succeeds, or ctx ends.
func (c *Controller) untilDone(ctx context.Context, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := do()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		c.Report(Task, err)
		c.Log.Warn("The objects of the MCS API cannot be written yet, trying again", "error", err)
		if err := waiting.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func (c *Controller) waitReady(ctx context.Context) error {
	for _, wait := range []func(context.Context) error{
		c.Cluster.Services.WaitListed, c.Cluster.EndpointSlices.WaitListed, c.Cluster.Namespaces.WaitListed,
		c.Cluster.ServiceExports.WaitListed, c.Cluster.ServiceImports.WaitListed, c.Cluster.WaitWhole,
	} {
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
		t.look(ctx, now) // before the snapshot, which has everything of the clusters that were read
		txn := t.DB.ReadTxn()
		more := t.gather(txn)
		if len(t.dirty) > 0 {
			t.round(ctx, txn, now)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.tell()
		tick, cancel := context.WithTimeout(ctx, lookAgain)
		_, err := more.Wait(tick, batchPeriod)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
}
