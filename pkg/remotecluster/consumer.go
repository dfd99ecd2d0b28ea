package remotecluster

import (
	"context"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Family fills the tables with one resource of one cluster. Two calls of Run never
// overlap. The data of a family outlives the sessions that it runs in.
type Family interface {
	// Resource returns the resource that the family reads.
	Resource() wire.Resource
	// Run follows the resource until ctx ends or the session can no longer serve, and returns why.
	Run(ctx context.Context, s store.Session) error
	// Observe receives the result of a linearizable read on the connection.
	Observe(p kvstore.Probe)
	// Drain withdraws all entries of the family.
	Drain()
	// Status describes the family at this moment.
	Status() store.Status
	// Find returns the entry of a key, by its name below the resource's prefix; false
	// if the key is unknown.
	Find(name string) (store.Found, bool)
}

// Consumer receives the data of one cluster, such as the view of the mesh. [Copier] has
// the further methods of a mirror.
type Consumer interface {
	// Families returns the families to run, in the order in which they are drained. It is called once.
	Families() []Family
	// SkipOptional reports whether the cluster is used without its optional resources
	// ([wire.Description]): then their state does not affect the readiness of the cluster.
	SkipOptional() bool
	// Follow runs in parallel with the sessions, until ctx ends.
	Follow(ctx context.Context)
	// Withhold takes the cluster's service backends out of use (true), or puts them back in use (false). A mirror removes
	// them from its copy.
	Withhold(yes bool)
}

// Copier is a [Consumer] that keeps a copy of the cluster outside this process, with the
// cluster's configuration.
type Copier interface {
	Consumer
	// Adopt receives each configuration before any resource is read according to it. An error ends the session.
	Adopt(ctx context.Context, cfg wire.ClusterConfig) error
	// Disown is called before a cluster ID is released although the client file still exists: the
	// cluster has a new ID, or the policy does not admit it. The ID may have been reserved by an
	// earlier process. It may be called repeatedly and must be idempotent. When it returns nil its
	// work is done; otherwise the error is that of ctx.
	Disown(ctx context.Context) error
	// Withdraw is called before the families are drained. It returns an error when ctx
	// ends: then nothing is drained.
	Withdraw(ctx context.Context) error
}
