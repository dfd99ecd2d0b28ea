package clustermesh

import (
	"context"
	"log/slog"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ListsPerCore is how many lists are best run at once for each core: one keeps it busy with
// decoding while another waits, and more of them only hold more pages in memory.
const ListsPerCore = 2

// Params is what a Mesh is made of.
type Params struct {
	// Directory is the mesh directory: one client file per remote cluster.
	Directory string
	// Local is the own cluster.
	Local wire.ClusterInfo
	// SyncTimeout is how long readiness waits for clusters that do not answer.
	SyncTimeout time.Duration
	// Consumer returns what takes what is read of a cluster: see [View.Consumer].
	Consumer func(Target) remotecluster.Consumer
	// Leftovers names the clusters of which something is there before any of them
	// runs. It is asked once the directory has been read, a look that fails is none:
	// those without a file are drained. Its error ends Run. Nil is none.
	Leftovers func(ctx context.Context) ([]string, error)
	// KVStore are the options of the sessions. They may name the kvstore of the
	// own cluster, which is then read like the others and counts as local.
	KVStore etcd.Options
	// Granted is what remote clusters may claim; nil is everything. A change of it
	// is applied to what is there.
	Granted *claims.Current
	// StateDir is where the cluster IDs are remembered over restarts; empty is nowhere.
	StateDir string
	// CacheTTL is how long a remote cluster's service backends are used without
	// contact; 0 is for ever.
	CacheTTL time.Duration
	// Policy is what becomes of the service backends of remote clusters that go
	// quiet; nil is nothing.
	Policy *disconnect.Policy
	// Described says how well services of the own cluster are known from its description, as [View.Described]; nil is no
	// description. Without a local kvstore the mesh is not ready before they are known.
	Described func(wire.Resource) store.Status
	// ApplyPolicy makes it so: see [View.ApplyPolicy]. It is needed with a Policy.
	ApplyPolicy func(cluster string, to disconnect.State)
	// Lists and Batches bound how many lists run, and how many batches of events are
	// applied, at once; nil is no bound.
	Lists, Batches *store.Turns
	// Budgets is what remote clusters may cost; the zero value is no bound.
	Budgets budget.Budgets
	// Memory bounds what the entries of all remote clusters take together; nil does not.
	Memory *budget.Memory
	// Timings are those of the controllers; the zero value is the default.
	Timings remotecluster.Timings
	// Report is called after each look at the directory, with the error if it cannot be
	// read; nil is not called.
	Report func(error)
	Log    *slog.Logger
}

// Target is a cluster that is about to be read.
type Target struct {
	Name    string
	Own     bool   // it is our own, read from its kvstore
	Changed func() // to be called when what is shown of it has changed
	Log     *slog.Logger
}
