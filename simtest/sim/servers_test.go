package sim

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestKilledServerRefusesAndComesBackWithItsData(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{})
	ctx := testContext(t)
	want, id := of(r, wire.Nodes), r.etcd.id
	endpoint := r.Endpoint()
	agent := asAgent(t, r)
	read(t, r, agent, wire.Nodes)
	must(t, r.Kill())
	if _, err := net.Dial("tcp", r.etcd.gate.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection to a killed server: %v", err)
	}
	wantRefused(t, r.Kill(), false, "killed already")
	wantRefused(t, r.Freeze(0), false, "start it first")
	wantRefused(t, r.Put(ctx, "k", nil), false, "start it first")
	_, err := r.Churn(ctx, 10)
	wantRefused(t, err, false, "start it first")
	if s, err := r.State(ctx); err != nil || s.State != "killed" || s.Keys != nil {
		t.Errorf("state %+v, %v", s, err)
	}
	must(t, r.Start(ctx))
	wantRefused(t, r.Start(ctx), false, "runs already")
	if got, _ := read(t, r, agent, wire.Nodes); cmp.Diff(want, got) != "" {
		t.Errorf("the nodes differ:\n%s", cmp.Diff(want, got))
	}
	must(t, r.Restart(ctx))
	if r.etcd.id != id || r.Endpoint() != endpoint {
		t.Errorf("another etcd: %x at %s", r.etcd.id, r.Endpoint())
	}
	churn(t, r, 50)
	checkContents(t, r)
}

func TestFrozenServerSaysNothingUntilTheThaw(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{})
	agent := asAgent(t, r)
	read(t, r, agent, wire.Nodes)
	wantRefused(t, r.Thaw(), false, "not frozen")
	must(t, r.Freeze(0))
	wantRefused(t, r.Freeze(0), false, "frozen already")
	wantRefused(t, r.Freeze(-time.Second), true, "negative")
	if s, err := r.State(testContext(t)); err != nil || s.State != "frozen" {
		t.Errorf("state %+v, %v", s, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := agent.Get(ctx, wire.HeartbeatKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server answered: %v", err)
	}
	churn(t, r, 20)
	must(t, r.Thaw())
	if got, _ := read(t, r, agent, wire.IPs); cmp.Diff(of(r, wire.IPs), got) != "" {
		t.Errorf("after the thaw (-simulator +etcd):\n%s", cmp.Diff(of(r, wire.IPs), got))
	}
}

func TestFrozenServerThawsByItself(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Plain: true})
	ctx, stop := testContext(t), running(t, r.etcd.run)
	must(t, r.Freeze(0))
	must(t, r.Freeze(50*time.Millisecond)) // the time of the thaw may be changed later
	read(t, r, asAgent(t, r), wire.Nodes)  // waits for the thaw
	must(t, r.Freeze(time.Hour))
	if s, err := r.State(ctx); err != nil || s.ThawAt == nil {
		t.Errorf("state %+v, %v", s, err)
	}
	must(t, r.SetChurn(500))
	must(t, r.Kill()) // ends the freeze too, and Run continues
	while, cancel := context.WithTimeout(ctx, 10*churnInterval)
	defer cancel()
	must(t, r.churn(while)) // the pending changes are impossible, but churn continues
	must(t, r.Start(ctx))
	agent := asAgent(t, r)
	_, before := read(t, r, agent, wire.Nodes)
	waittest.Until(t, "changes after the start", func() bool {
		_, now := read(t, r, agent, wire.Nodes)
		return now.Header.Revision > before.Header.Revision
	})
	stop()
}

func TestReplacedServerIsAnotherWithTheSameData(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{})
	ctx := testContext(t)
	agent := asAgent(t, r)
	must(t, r.Put(ctx, "cilium/state/nodes/v1/cluster2/extra", []byte("x")))
	want, before := read(t, r, agent, wire.Nodes)
	old := r.etcd.config.DataDir
	must(t, r.Replace(ctx))
	got, after := read(t, r, agent, wire.Nodes)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the nodes differ:\n%s", diff)
	}
	if before.Header.ClusterId == after.Header.ClusterId || before.Header.Revision == after.Header.Revision {
		t.Errorf("the same etcd: %v and %v", before.Header, after.Header)
	}
	if exists(old) {
		t.Error("the data of the server before are left")
	}
	if _, err := agent.Put(ctx, wire.HeartbeatKey, "x"); err == nil {
		t.Error("the agent may write to the new server")
	}
	churn(t, r, 100)
	checkEqual(t, r)
	mend(t, r)
	checkContents(t, r)
}

func TestEmptyServers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		empty  func(*Running, context.Context) error
		sameID bool
	}{
		"replaced": {(*Running).ReplaceEmpty, false},
		"wiped":    {(*Running).Wipe, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := loadCluster(t, contents.Default("cluster2", 2), Options{})
			ctx := testContext(t)
			before := len(readAll(t, r.Client()))
			id := r.etcd.id
			must(t, tc.empty(r, ctx))
			_, resp := read(t, r, asAgent(t, r), wire.Nodes)
			if (resp.Header.ClusterId == id) != tc.sameID || resp.Header.Revision != 1 {
				t.Errorf("etcd cluster ID was %x, now %v", id, resp.Header)
			}
			if n, err := r.Churn(ctx, 10); n != 0 || err != nil {
				t.Errorf("an empty cluster changed: %d, %v", n, err)
			}
			must(t, r.etcd.heartbeat(ctx))
			if got := readAll(t, r.Client()); len(got) > 0 || len(r.Contents()) > 0 {
				t.Errorf("%d keys in an empty server, %d expected", len(got), len(r.Contents()))
			}
			must(t, r.Put(ctx, "some key", nil))
			checkEqual(t, r)
			if n, err := r.Mend(ctx); err != nil || n < before-1 {
				t.Errorf("%d keys mended: %v", n, err)
			}
			if after := checkContents(t, r); len(after) != before {
				t.Errorf("%d keys after mending, there were %d", len(after), before)
			}
		})
	}
}

func TestCompactedHistoryIsGone(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Plain: true})
	rev, err := r.Compact(testContext(t))
	must(t, err)
	if _, err := r.Client().Get(testContext(t), "k", clientv3.WithRev(rev-1)); err == nil {
		t.Error("a compacted revision can be read")
	}
}

func TestHeartbeatStopsAndBeginsAgain(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster2", 2), Options{Plain: true})
	ctx := testContext(t)
	revision := func() int64 {
		resp, err := r.Client().Get(ctx, wire.HeartbeatKey)
		if err != nil || resp.Count != 1 {
			t.Fatalf("%v %v", resp, err)
		}
		return resp.Kvs[0].ModRevision
	}
	wantRefused(t, r.SetHeartbeat(ctx, true), false, "on already")
	must(t, r.SetHeartbeat(ctx, false))
	before := revision()
	must(t, r.etcd.heartbeat(ctx))
	if revision() != before {
		t.Error("the heartbeat goes on")
	}
	must(t, r.SetHeartbeat(ctx, true))
	if revision() == before {
		t.Error("the heartbeat does not begin again at once")
	}
	must(t, r.Put(ctx, wire.HeartbeatKey, []byte("x")))
	mend(t, r)
	if got := readAll(t, r.Client())[wire.HeartbeatKey].value; got == "x" {
		t.Error("a heartbeat by hand outlives the mending")
	}
}
