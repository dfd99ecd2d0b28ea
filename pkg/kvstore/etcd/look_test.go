package etcd

import (
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestWhatIsAsItShouldBeIsNoWrite: a put of an unchanged key uses neither raft nor the disk of the server, but still
// proves that its lock is held.
func TestWhatIsAsItShouldBeIsNoWrite(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	ctx := waittest.Context(t)
	e, _ := writer(t, srv.Endpoint(), hasty())
	l := lock(t, e, "lock")
	put := func(key, value string, opts ...kvstore.Option) kvstore.Result {
		t.Helper()
		r, err := e.Put(ctx, key, []byte(value), append(opts, kvstore.IfChanged(), kvstore.Holding(l))...)
		must(t, err)
		return r
	}
	index := func() uint64 {
		t.Helper()
		st, err := srv.Local().Status(ctx, srv.Endpoint())
		must(t, err)
		return st.RaftIndex
	}
	const n = 20
	for i := range n {
		put(fmt.Sprint("leased/", i), "v", kvstore.Leased())
		put(fmt.Sprint("plain/", i), "v", kvstore.IfOther("leased/0", []byte("v")))
	}
	before := index()
	for i := range n {
		for _, r := range []kvstore.Result{put(fmt.Sprint("leased/", i), "v", kvstore.Leased()), put(fmt.Sprint("plain/", i), "v", kvstore.IfOther("leased/0", []byte("v")))} {
			if r.Done || !r.Met || r.At.Revision == 0 {
				t.Errorf("%d is put again: %+v", i, r)
			}
		}
	}
	if after := index(); after-before >= n {
		t.Errorf("%d puts of what is there were %d proposals to raft", 2*n, after-before)
	}
	if r := put("plain/0", "v", kvstore.IfOther("leased/0", []byte("w"))); r.Met || r.Done {
		t.Errorf("as it should be, and another condition does not hold: %+v", r)
	}
	for _, r := range []kvstore.Result{put("plain/0", "w"), put("leased/0", "v"), put("plain/1", "v", kvstore.Leased())} {
		if !r.Done || !r.Met {
			t.Errorf("another value or another lease is not written: %+v", r)
		}
	}
	must(t, second(srv.Local().Delete(ctx, l.Key)))
	kvtest.WantErr(t, second(e.Put(ctx, "leased/1", []byte("v"), kvstore.Leased(), kvstore.IfChanged(), kvstore.Holding(l))), kvstore.ErrLockLeaseExpired)
}
