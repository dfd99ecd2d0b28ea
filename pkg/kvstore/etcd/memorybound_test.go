package etcd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// The tests of this file measure the heap, so they do not run in parallel with
// others, and their servers run in separate processes.

// heap returns the bytes in use after a collection.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// mib is a mebibyte.
const mib = 1 << 20

// load writes n keys of the given value size, several in a transaction.
func load(t *testing.T, c *clientv3.Client, n, perTxn, size int) {
	t.Helper()
	g, ctx := errgroup.WithContext(waittest.Context(t))
	g.SetLimit(8)
	value := strings.Repeat("x", size)
	for at := 0; at < n; at += perTxn {
		g.Go(func() error {
			var ops []clientv3.Op
			for i := at; i < min(at+perTxn, n); i++ {
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("p/%06d", i), value))
			}
			return putNew(ctx, c, ops)
		})
	}
	must(t, g.Wait())
}

// putNew writes new keys, all or none. A request to a busy etcd times out after some seconds, and may be executed
// nevertheless: then the next attempt finds the keys and writes nothing.
func putNew(ctx context.Context, c *clientv3.Client, ops []clientv3.Op) error {
	absent := clientv3.Compare(clientv3.ModRevision(string(ops[0].KeyBytes())), "=", 0)
	for {
		if _, err := c.Txn(ctx).If(absent).Then(ops...).Commit(); !errors.Is(err, rpctypes.ErrTimeout) {
			return err
		}
	}
}

func TestLargeListNeedsLittleMemory(t *testing.T) { //nolint:paralleltest // see above
	heaptest.Long(t)
	const n, size = 200000, 200
	p := etcdtest.StartProcess(t)
	load(t, p.Client(t), n, 128, size)
	e := connect(t, addresses(t, p.Endpoint()), DefaultOptions())
	before, most, keys, pages, last := heap(), 0, 0, 0, ""
	at, err := e.List(waittest.Context(t), "p/", func(p kvstore.Page) error {
		if k := string(p.Items[0].Key); k <= last {
			t.Errorf("page %d begins with %s, the one before ended with %s", pages, k, last)
		}
		last = string(p.Items[len(p.Items)-1].Key)
		keys += len(p.Items)
		if pages++; pages%5 == 0 {
			most = max(most, heap()-before)
		}
		return nil
	})
	must(t, err)
	if keys != n || pages != n/5000 || at.Revision < int64(n/128) {
		t.Errorf("%d keys in %d pages at %v, want %d in %d", keys, pages, at, n, n/5000)
	}
	t.Logf("%d keys of %d MiB, %d MiB of heap", n, n*size/mib, most/mib)
	if most > 12*mib {
		t.Errorf("listing holds %d MiB", most/mib)
	}
}

// TestUnreadStreamNeedsLittleMemory: unread events stay in the server.
func TestUnreadStreamNeedsLittleMemory(t *testing.T) { //nolint:paralleltest // see above
	heaptest.Long(t)
	const n, size = 24000, 2048
	p := etcdtest.StartProcess(t)
	e := connect(t, addresses(t, p.Endpoint()), DefaultOptions())
	st := watch(t, e, "p/", e.Status().Head)
	writer := p.Client(t)
	before := heap()
	load(t, writer, n, 8, size)
	held := heap() - before
	t.Logf("%d unread events of %d MiB, %d MiB of heap", n, n*size/mib, held/mib)
	if held > 8*mib {
		t.Errorf("an unread stream holds %d MiB", held/mib)
	}
	// An unread stream does not block other calls of the session.
	head, err := e.Head(waittest.Context(t))
	must(t, err)
	events, batches, last := 0, 0, kvstore.Position{}
	for last.Revision < head.Revision {
		b, err := st.Recv()
		must(t, err)
		for _, ev := range b.Events {
			if ev.ModRevision < last.Revision || ev.ModRevision > last.Revision+1 && last.Revision > 0 {
				t.Fatalf("revision %d after %d", ev.ModRevision, last.Revision)
			}
			last.Revision = ev.ModRevision
		}
		events += len(b.Events)
		batches++
	}
	if events != n {
		t.Errorf("%d events, want %d", events, n)
	}
	t.Logf("in %d batches", batches)
}

// TestFragments receives a backlog that does not fit into one message.
func TestFragments(t *testing.T) {
	t.Parallel()
	const n = 600
	p := etcdtest.StartProcess(t, etcdtest.WithConfig(etcdtest.Config{MaxRequestBytes: 64 << 10}))
	o := DefaultOptions()
	o.receive = mib
	e := connect(t, addresses(t, p.Endpoint()), o)
	at := e.Status().Head
	load(t, p.Client(t), n, 1, 8<<10)
	ctx := waittest.Context(t)
	partial := 0
	seen := make(map[int64]bool)
	last, err := drainTo(ctx, e, at, at.Revision+n, func(b kvstore.Batch) {
		if b.Partial {
			partial++
		}
		for _, ev := range b.Events {
			if seen[ev.ModRevision] {
				t.Errorf("revision %d twice", ev.ModRevision)
			}
			seen[ev.ModRevision] = true
		}
	})
	if err != nil || last.Revision != at.Revision+n || len(seen) != n || partial == 0 {
		t.Errorf("%d revisions, %d fragments, at %v, error %v", len(seen), partial, last, err)
	}
}

func drainTo(ctx context.Context, e *Session, from kvstore.Position, to int64, f func(kvstore.Batch)) (kvstore.Position, error) {
	st, err := e.Watch(ctx, "p/", from)
	if err != nil {
		return from, err
	}
	defer st.Close()
	for from.Revision < to {
		b, err := st.Recv()
		if err != nil {
			return from, err
		}
		if f != nil {
			f(b)
		}
		from = b.At
	}
	return from, nil
}
