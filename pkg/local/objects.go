package local

import (
	"context"
	"iter"

	"github.com/cilium/statedb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// Object is a pointer to an object of Kubernetes.
type Object[T any] interface {
	*T
	metav1.Object
}

// Objects are the objects of one kind. Each is immutable once it was passed to Apply.
type Objects[T any, P Object[T]] struct {
	db    *statedb.DB
	table statedb.RWTable[P]
	named statedb.Index[P, string]
	keeps func(P) bool           // nil: every object
	done  func(statedb.WriteTxn) // records that the table is complete
}

// add registers a table for a kind, with further indexes in addition to the index by name.
func add[T any, P Object[T]](c *Cluster, kind string, others ...statedb.Indexer[P]) (*Objects[T, P], error) {
	name := func(o P) string { return Name(o) }
	named := tables.TextIndex("name", true, name)
	table, err := tables.New(c.db, "local-"+kind, name, named, others...)
	if err != nil {
		return nil, err
	}
	txn := c.db.WriteTxn(table)
	defer txn.Commit()
	objects := &Objects[T, P]{db: c.db, table: table, named: named, done: table.RegisterInitializer(txn, "source")}
	c.all[kind] = objects
	return objects, nil
}

// Name returns the name of an object among those of its kind: "namespace/name", or "name" for one without a namespace.
func Name(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Table returns the table of the objects.
func (o *Objects[T, P]) Table() statedb.Table[P] { return o.table }

// Snapshot returns a view of the present database, for [Objects.Get] and for queries of [Objects.Table].
func (o *Objects[T, P]) Snapshot() statedb.ReadTxn { return o.db.ReadTxn() }

// Get finds the object with this [Name].
func (o *Objects[T, P]) Get(txn statedb.ReadTxn, name string) (P, bool) {
	one, _, found := o.table.Get(txn, o.named.Query(name))
	return one, found
}

// InNamespace iterates over the objects of a namespace, by name.
func (o *Objects[T, P]) InNamespace(txn statedb.ReadTxn, namespace string) iter.Seq[P] {
	return func(yield func(P) bool) {
		for one := range o.table.Prefix(txn, o.named.Query(namespace+"/")) {
			if !yield(one) {
				return
			}
		}
	}
}

// Follow returns a follower of the table. It must be closed: until then, deleted objects are kept for it.
func (o *Objects[T, P]) Follow() (*tables.Follower[P], error) { return tables.Follow(o.db, o.table) }

// Len returns the number of objects.
func (o *Objects[T, P]) Len() int { return o.table.NumObjects(o.db.ReadTxn()) }

// Apply makes a batch of changes visible in one transaction.
func (o *Objects[T, P]) Apply(changes []store.Change[T]) {
	if len(changes) == 0 {
		return
	}
	txn := o.db.WriteTxn(o.table)
	defer txn.Commit()
	for _, ch := range changes {
		var err error
		switch {
		case ch.New == nil:
			_, _, err = o.table.Delete(txn, P(ch.Old))
		case o.keeps != nil && !o.keeps(P(ch.New)):
			_, _, err = o.table.Delete(txn, P(ch.New)) // an object of this name may have been kept before
		default:
			_, _, err = o.table.Insert(txn, P(ch.New))
		}
		tables.Must(err)
	}
}

// Listed records that all objects that existed at the start are in the table. It may be called again.
func (o *Objects[T, P]) Listed() {
	txn := o.db.WriteTxn(o.table)
	defer txn.Commit()
	o.done(txn)
}

// WaitListed waits until all objects that existed at the start are in the table, or until ctx ends.
func (o *Objects[T, P]) WaitListed(ctx context.Context) error {
	listed, changed := o.table.Initialized(o.db.ReadTxn())
	return wait(ctx, listed, changed)
}

// wait returns at once when is holds. Otherwise it waits until becomes is closed, or returns the error of ctx.
func wait(ctx context.Context, is bool, becomes <-chan struct{}) error {
	if is {
		return nil
	}
	select {
	case <-becomes:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
