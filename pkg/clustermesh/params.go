package clustermesh

import (
	"context"
	"log/slog"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ListsPerCore is the best number of lists that run at the same time per core: one keeps the core
// busy with decoding while another waits. More lists only hold more pages in memory.
const ListsPerCore = 2

// Params are the parameters of Remotes.
type Params struct {
	// Directory is the mesh directory: one client file per remote cluster.
	Directory string
	// Local is the own cluster.
	Local wire.ClusterInfo
	// SyncTimeout is how long readiness waits for clusters that do not answer.
	SyncTimeout time.Duration
	// Consumer returns the consumer of a cluster's data: see [Ingest.Consumer].
	Consumer func(Target) remotecluster.Consumer
	// Leftovers returns the names of the clusters that have entries from an earlier process.
	// It is called once, after the first read of the directory that succeeds. The clusters
	// without a file are drained. Its error ends Run. Nil means that there are none.
	Leftovers func(ctx context.Context) ([]string, error)
	// Engine opens the sessions.
	Engine Engine
	// Own is the kvstore of the own cluster, which is read like those of the others; nil: it is not read.
	Own *OwnKVStore
	// Poll is the interval between two readings of the directory where file system events are not used; 0: they are.
	Poll time.Duration
	// Granted is what remote clusters may claim; nil means everything. A change of it
	// is applied to the existing entries.
	Granted *claims.Current
	// StateDir is the directory where the cluster IDs are saved for a restart; empty means that they are not saved.
	StateDir string
	// CacheTTL is how long a remote cluster's service backends are used without
	// contact; 0 means without limit.
	CacheTTL time.Duration
	// Policy decides about the service backends of unreachable remote clusters; nil means
	// that they are kept.
	Policy *disconnect.Policy
	// Described returns the status of the services of the own cluster that are read from its description, as
	// [Ingest.Described]; nil means no description. Without a local kvstore the mesh is not ready before they are read.
	Described func(wire.Resource) store.Status
	// ApplyPolicy applies a decision of Policy: see [Ingest.ApplyPolicy]. It is required with a Policy.
	ApplyPolicy func(cluster string, to disconnect.State)
	// Lists bounds the lists that run at the same time, Batches the batches of events that are
	// applied at the same time; nil means no bound.
	Lists, Batches *store.Turns
	// Budgets are the maximum costs of remote clusters; the zero value means no bound.
	Budgets budget.Budgets
	// Memory bounds the memory of the entries of all remote clusters together; nil means no bound.
	Memory *budget.Memory
	// Timings are those of the controllers; the zero value means the default.
	Timings remotecluster.Timings
	// Changes counts the changes of the states of the clusters, so that several Remotes, one after another, can have
	// one count; nil: those of this Remotes.
	Changes *waiting.Counter
	// Report is called after each read of the directory, with the error if the read failed;
	// it may be nil.
	Report func(error)
	Log    *slog.Logger
}

// Target is a cluster that is about to be read.
type Target struct {
	Name    string
	Own     bool   // it is the own cluster, read from its kvstore
	Changed func() // to be called when the displayed state of the cluster has changed
	Log     *slog.Logger
}
