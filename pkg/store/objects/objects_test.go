package objects_test

import (
	"testing"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/objects"
)

type object struct{ cluster, name, value string }

func (o *object) key() string { return o.cluster + "/" + o.name }

func TestTable(t *testing.T) {
	t.Parallel()
	db := statedb.New()
	table, err := objects.New(db, "toys", (*object).key, func(a, b *object) bool { return *a == *b })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.New(db, "toys", (*object).key, nil); err == nil {
		t.Error("two tables have one name")
	}
	a, b := &object{"c2", "a", "1"}, &object{"c2", "b", "1"}
	table.Apply([]store.Change[object]{{Name: "a", New: a}, {Name: "b", New: b}})
	revision := table.Rows().Revision(db.ReadTxn())
	table.Apply(nil)
	table.Apply([]store.Change[object]{{Name: "a", Old: a, New: &object{"c2", "a", "1"}}})
	if now := table.Rows().Revision(db.ReadTxn()); now != revision {
		t.Error("an equal object was written again")
	}
	table.Apply([]store.Change[object]{{Name: "a", Old: a, New: &object{"c2", "a", "2"}}, {Name: "b", Old: b}, {Name: "none", Old: &object{"c2", "none", ""}}})
	if one, _, found := table.Rows().Get(db.ReadTxn(), objects.ByKey[object]("c2/a")); !found || one.value != "2" || table.Rows().NumObjects(db.ReadTxn()) != 1 {
		t.Errorf("the table has %v and %d objects", one, table.Rows().NumObjects(db.ReadTxn()))
	}
}
