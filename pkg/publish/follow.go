package publish

import (
	"context"
	"maps"
	"slices"

	"github.com/cilium/statedb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// Target takes what is to be published of one kind. The names are those of keys
// without their prefix. No method may block.
type Target interface {
	// Put: this is to be published under the name, whatever was before.
	Put(name string, value []byte)
	// Delete: nothing is to be published under the name any more.
	Delete(name string)
	// Complete: everything that was known at the start was given. What nobody
	// gave may be withdrawn.
	Complete()
}

// touch notes that something has to be looked at again: a service, a node, a pod.
type touch func(name string)

// table is one that is followed.
type table interface {
	waitListed(ctx context.Context) error
	open() error
	// drain says of everything that changed what it touches, and returns a
	// channel that is closed when there is more.
	drain(txn statedb.ReadTxn, t touch) <-chan struct{}
	close()
}

// followed is a table with what its changes mean.
type followed[T any, P interface {
	*T
	metav1.Object
}] struct {
	objects *local.Objects[T, P]
	touches func(txn statedb.ReadTxn, o P, deleted bool, t touch)
	changes statedb.ChangeIterator[P]
}

// tableOf returns a table to follow. touches says what a change of an object
// touches; nil is the name of the object.
func tableOf[T any, P interface {
	*T
	metav1.Object
}](objects *local.Objects[T, P], touches func(txn statedb.ReadTxn, o P, deleted bool, t touch)) table {
	if touches == nil {
		touches = func(_ statedb.ReadTxn, o P, _ bool, t touch) { t(local.Name(o)) }
	}
	return &followed[T, P]{objects: objects, touches: touches}
}

func (f *followed[T, P]) waitListed(ctx context.Context) error { return f.objects.WaitListed(ctx) }

func (f *followed[T, P]) open() (err error) {
	f.changes, err = f.objects.Changes()
	return err
}

func (f *followed[T, P]) drain(txn statedb.ReadTxn, t touch) <-chan struct{} {
	for {
		changes, more := f.changes.Next(txn)
		n := 0
		for ch := range changes {
			f.touches(txn, ch.Object, ch.Deleted, t)
			n++
		}
		if n == 0 {
			return more
		}
	}
}

func (f *followed[T, P]) close() {
	if f.changes != nil {
		f.changes.Close()
	}
}

// follow calls apply with the names that were touched, sorted, and a snapshot
// with all of what touched them: first with everything, once all tables are
// listed (also when that is nothing), and then after each change. It calls
// complete once, when everything was applied that the cluster had at the start
// ([local.Cluster.IsWhole]). It ends with ctx.
func follow(ctx context.Context, cluster *local.Cluster, tables []table, apply func(txn statedb.ReadTxn, names []string), complete func()) error {
	for _, t := range tables {
		if err := t.waitListed(ctx); err != nil {
			return err
		}
	}
	for _, t := range tables {
		defer t.close()
		if err := t.open(); err != nil {
			return err
		}
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
			more.Add(t.drain(txn, func(name string) { names[name] = struct{}{} }))
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
