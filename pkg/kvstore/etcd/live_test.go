package etcd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestGoldenLikeTheReference repeats the operations of the reference client against a real etcd.
func TestGoldenLikeTheReference(t *testing.T) {
	t.Parallel()
	var want struct {
		PagedList struct {
			Ascending bool `json:"ascending"`
			Entries   int  `json:"entries"`
		} `json:"paged_list"`
		AfterCompaction string `json:"watch_after_compaction"`
		Delete          string `json:"watch_delete"`
	}
	golden(t, "live_etcd.json", &want)
	const prefix = "cilium/state/x/v1/c/"
	srv := etcdtest.Start(t)
	for i := range want.PagedList.Entries {
		srv.Put(t, fmt.Sprintf("%sk%05d", prefix, i), "v")
	}
	o := DefaultOptions()
	o.PageLimit = 256
	e := connect(t, addresses(t, srv.Endpoint()), o)
	var keys []string
	at, err := e.List(waittest.Context(t), prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			keys = append(keys, string(kv.Key))
		}
		return nil
	})
	if err != nil || len(keys) != want.PagedList.Entries || slices.IsSorted(keys) != want.PagedList.Ascending {
		t.Errorf("%d keys, error %v", len(keys), err)
	}
	st := watch(t, e, prefix, at)
	event := func() string {
		t.Helper()
		b, err := st.Recv()
		if err != nil || len(b.Events) != 1 {
			t.Fatalf("%v, %v", b, err)
		}
		ev := b.Events[0]
		kind := map[kvstore.EventType]string{kvstore.EventPut: "modify", kvstore.EventDelete: "delete"}[ev.Type]
		return fmt.Sprintf("%s %s value=%q", kind, ev.Key, ev.Value)
	}
	srv.Delete(t, prefix+"k00000")
	if got := event(); got != want.Delete {
		t.Errorf("%s, want %s", got, want.Delete)
	}
	srv.Compact(t)
	srv.Put(t, prefix+"k00001", "v2")
	if got := event(); got != want.AfterCompaction {
		t.Errorf("%s, want %s", got, want.AfterCompaction)
	}
}

func TestLimitsHoldOverTheNetwork(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	for i := range 30 {
		srv.Put(t, fmt.Sprintf("p/%02d", i), "v")
	}
	o := DefaultOptions()
	o.QPS, o.PageLimit = 40, 10
	e := connect(t, addresses(t, srv.Endpoint()), o)
	e.BootstrapComplete()
	start := time.Now()
	for range 50 { // of 3 pages each
		must(t, second(e.List(waittest.Context(t), "p/", func(kvstore.Page) error { return nil })))
	}
	took := time.Since(start)
	if took < 240*time.Millisecond { // (50-40)/40 s
		t.Errorf("50 lists at 40 a second took %s", took)
	}
	if e.limit.rate.Limit() != 40 {
		t.Errorf("limit %v", e.limit.rate.Limit())
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	srv := etcdtest.Start(t)
	o := DefaultOptions()
	o.Metrics = NewMetrics(reg)
	e := connect(t, addresses(t, srv.Endpoint()), o)
	ctx := waittest.Context(t)
	_, _, _ = e.Get(ctx, "cilium/cluster-config/c2")
	at, _ := e.List(ctx, "cilium/state/nodes/v1/c2/", func(kvstore.Page) error { return nil })
	if st, err := e.Watch(ctx, "cilium/state/ip/v1/default/", at); err != nil {
		t.Error(err)
	} else {
		st.Close()
	}
	e.Close()
	_, _ = e.Head(ctx)
	families, err := reg.Gather()
	must(t, err)
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			s := f.GetName()
			for _, l := range m.GetLabel() {
				s += " " + l.GetValue()
			}
			got = append(got, fmt.Sprintf("%s %d", s, m.GetHistogram().GetSampleCount()+uint64(m.GetGauge().GetValue())))
		}
	}
	const name = "mesh_agent_kvstore_operations_duration_seconds"
	want := []string{ // action, kind, outcome, scope
		"mesh_agent_kvstore_leases lock 0", // a session that only reads has none
		"mesh_agent_kvstore_leases session 0",
		"mesh_agent_kvstore_locks 0",
		name + " get read success cilium/clust 1",
		name + " head read fail cilium/.hear 1",
		name + " list read success nodes/v1 1",
		name + " probe read success cilium/.hear 1",
		name + " watch read success ip/v1 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

// TestGoldenScopes: the label equals that of the reference for every key except canaries. The reference
// has a cluster's name in their scope, so a removed cluster would leave its series behind.
func TestGoldenScopes(t *testing.T) {
	t.Parallel()
	var cases []struct{ Input, Output string }
	golden(t, "metric_scope_from_key.json", &cases)
	for _, c := range cases {
		if strings.HasPrefix(c.Input, wire.SyncedPrefix) {
			c.Output = wire.SyncedPrefix
		}
		m := NewMetrics(nil)
		m.observe("get", c.Input, time.Second, nil)
		if !m.operations.DeleteLabelValues("get", "read", "success", c.Output) {
			t.Errorf("%q has another scope than %q", c.Input, c.Output)
		}
	}
}
