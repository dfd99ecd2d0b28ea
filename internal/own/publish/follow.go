package publish

import (
	"context"
	"maps"
	"slices"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// Target takes the values to publish of one kind. The names are those of keys without their prefix. No method may
// block.
type Target interface {
	// Put: this value is to be published under the name, replacing any earlier one.
	Put(name string, value []byte)
	// Delete: nothing is to be published under the name any more.
	Delete(name string)
	// Complete: everything that was known at the start was given. Names that were not given may be withdrawn.
	Complete()
}

// output is the published names of one kind, with their target.
type output struct {
	to    Target              // nil: it is not published
	names map[string]struct{} // that are published
}

func newOutput(to Target) output { return output{to, make(map[string]struct{})} }

// set publishes a value under a name; nil withdraws the published value.
func (o output) set(name string, value []byte) {
	_, published := o.names[name]
	switch {
	case o.to == nil:
	case value != nil:
		o.names[name] = struct{}{}
		o.to.Put(name, value)
	case published:
		delete(o.names, name)
		o.to.Delete(name)
	}
}

func (o output) complete() {
	if o.to != nil {
		o.to.Complete()
	}
}

// touch notes that something has to be looked at again: a service, a node, a pod.
type touch func(name string)

// table is one that is followed.
type table interface {
	WaitListed(ctx context.Context) error
	open() error
	// drain says of everything that changed what it touches.
	drain(txn statedb.ReadTxn, t touch)
	// Changed returns a channel that is closed when there is more.
	Changed() <-chan struct{}
	Close()
}

// touches says what a change of an object touches.
type touches[O any] func(txn statedb.ReadTxn, o O, deleted bool, t touch)

// followed is a table with what its changes mean.
type followed[T any, P local.Object[T]] struct {
	*local.Objects[T, P]
	*tables.Follower[P]
	touches touches[P]
}

// tableOf returns a table to follow. Without touches a change touches the name of the object.
func tableOf[T any, P local.Object[T]](objects *local.Objects[T, P], touches touches[P]) table {
	if touches == nil {
		touches = func(_ statedb.ReadTxn, o P, _ bool, t touch) { t(local.Name(o)) }
	}
	return &followed[T, P]{Objects: objects, touches: touches}
}

func (f *followed[T, P]) open() (err error) {
	f.Follower, err = f.Objects.Follow()
	return err
}

func (f *followed[T, P]) drain(txn statedb.ReadTxn, t touch) {
	f.DrainTo(txn, func(o P, deleted bool) { f.touches(txn, o, deleted, t) })
}

// follow calls apply with the names that were touched, sorted, and a snapshot with all of
// what touched them: first with everything, once all tables are listed, and then after each
// change. It calls complete once, when everything was applied that the cluster had at the
// start ([local.Cluster.IsWhole]). It ends with ctx.
func follow(ctx context.Context, cluster *local.Cluster, tables []table, apply func(txn statedb.ReadTxn, names []string), complete func()) error {
	for _, t := range tables {
		if err := t.WaitListed(ctx); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if err := t.open(); err != nil {
			return err
		}
		defer t.Close()
	}
	done := false
	for first := true; ; first = false {
		whole, becomesWhole := cluster.IsWhole() // before the snapshot, which then has everything
		txn := cluster.ReadTxn()
		names := make(map[string]struct{})
		more := statedb.NewWatchSet()
		if !whole {
			more.Add(becomesWhole)
		}
		for _, t := range tables {
			t.drain(txn, func(name string) { names[name] = struct{}{} })
			more.Add(t.Changed())
		}
		if first || len(names) > 0 {
			apply(txn, slices.Sorted(maps.Keys(names)))
		}
		if whole && !done {
			done = true
			complete()
		}
		if _, err := more.Wait(ctx, 0); err != nil {
			return err
		}
	}
}
