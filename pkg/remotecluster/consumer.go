package remotecluster

import (
	"context"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Source fills the tables with one resource of one cluster. Run is never
// called twice at once; what a source holds outlives the sessions it is run on.
type Source interface {
	// Resource names what it brings.
	Resource() wire.Resource
	// Run follows the resource until ctx ends or the session cannot serve any more, and says why.
	Run(ctx context.Context, s store.Session) error
	// Observe takes the result of a linearizable read on the connection.
	Observe(p kvstore.Probe)
	// Drain withdraws everything the source brought.
	Drain()
	// Status describes it at this moment.
	Status() store.Status
	// Find tells what is known of a key, by its name below the resource's prefix;
	// false for nothing.
	Find(name string) (store.Found, bool)
}

// Consumer takes what is read of one cluster, such as the view of the mesh. What a
// mirror does beside that is in [Copier].
type Consumer interface {
	// Sources are what is read, in the order in which they are drained. It is called once.
	Sources() []Source
	// SkipOptional tells that the cluster is used without optional resources
	// ([wire.Description]): how they are makes it neither ready nor less than that.
	SkipOptional() bool
	// Follow runs beside the sessions, until ctx ends.
	Follow(ctx context.Context)
	// Withhold takes the cluster's service backends out of use, and back.
	Withhold(yes bool)
}

// Copier is a [Consumer] that keeps a copy of the cluster outside this process, with the
// cluster's configuration.
type Copier interface {
	Consumer
	// Adopt takes each configuration before anything is read as it says. An error ends the session.
	Adopt(ctx context.Context, cfg wire.ClusterConfig) error
	// Disown is called before a cluster ID is released although the client file still exists: the
	// cluster has a new ID, or the policy does not admit it. The ID may have been reserved by an
	// earlier process. It may be called repeatedly and must be idempotent. When it returns nil its
	// work is done; otherwise the error is that of ctx.
	Disown(ctx context.Context) error
	// Withdraw comes before the sources are drained. It ends with an error when ctx
	// does: then nothing is drained.
	Withdraw(ctx context.Context) error
}
