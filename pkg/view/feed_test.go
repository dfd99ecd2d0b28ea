package view

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// TestAViewIsOneMoment: while everything changes, a view is exactly what the changes up
// to its position make, and each change says what was there before it.
func TestAViewIsOneMoment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	var runs, writers sync.WaitGroup
	defer writers.Wait()
	defer runs.Wait()
	defer cancel()
	runs.Go(func() { _ = f.feed.run(ctx) }) // it ends with ctx
	changeNodes := func() {
		for i := range 1000 {
			n := &nodes.Node{Cluster: "c2", Name: fmt.Sprint(i % 3), BootID: fmt.Sprint(i)}
			ch := store.Change[nodes.Node]{New: n}
			if i%2 == 0 {
				ch = store.Change[nodes.Node]{Old: n}
			}
			f.nodes.Apply([]store.Change[nodes.Node]{ch})
		}
	}
	changeAddresses := func() {
		for i := range 15_000 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 3)})
			e := ipcache.NewEntry(ipcache.Spec{Prefix: netip.PrefixFrom(a, 32), Cluster: &ipcache.Cluster{Name: "c2", ID: 2}, Identity: uint32(i)})
			op := ipcache.Op{New: e}
			if i%2 == 0 {
				op = ipcache.Op{Old: e}
			}
			f.ips.Apply([]ipcache.Op{op})
		}
	}
	known := make(map[string]any)
	var position uint64
	page := make([]feedEntry, 0, pageSize)
	for i := range 200 {
		if i%10 == 0 {
			writers.Wait() // no more changes than are kept
			writers.Go(changeNodes)
			writers.Go(changeAddresses)
		}
		v := f.Snapshot(ctx)
		for position < v.Position {
			entries, reached, _, held := f.feed.after(position, nil, page[:0:min(pageSize, v.Position-position)])
			if !held {
				t.Fatal("changes are missing")
			}
			for _, e := range entries {
				name := fmt.Sprintf("%T", e.object)
				switch o := e.object.(type) {
				case *nodes.Node:
					name += o.Key()
				case *ipcache.Entry:
					name += o.Prefix().String()
				default:
					continue
				}
				if known[name] != e.before {
					t.Fatalf("%s was %v, and is said to have been %v", name, known[name], e.before)
				}
				if known[name] = e.object; e.deleted {
					delete(known, name)
				}
			}
			position = reached
		}
		there := make(map[string]any)
		for n := range f.Nodes.Table().All(v.Txn) {
			there[fmt.Sprintf("%T", n)+n.Key()] = n
		}
		for e := range v.IPs.From(netip.Prefix{}) {
			there[fmt.Sprintf("%T", e)+e.Prefix().String()] = e
		}
		if !maps.Equal(known, there) {
			t.Fatalf("the changes up to %d make\n%v\nthe view is\n%v", position, known, there)
		}
	}
}
