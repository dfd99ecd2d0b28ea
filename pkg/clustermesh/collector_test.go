package clustermesh

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// series returns every series of the registry: its name and its labels.
func series(t *testing.T, reg prometheus.Gatherer) []string {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all = append(all, strings.TrimSpace(f.GetName()+" "+strings.Join(labels, " ")))
		}
	}
	slices.Sort(all)
	return all
}

// perCluster returns the series of a cluster that is synced, with one refused key.
func perCluster(name string) (all []string) {
	for _, s := range []string{
		"readiness_status", "failures", "last_failure_ts", "cache_revocations", "policy_state", "heartbeat_age_seconds", "probe_interval_seconds", "internal_errors_total",
	} {
		all = append(all, "mesh_agent_clustermesh_remote_cluster_"+s+" target_cluster="+name)
	}
	all = append(all, "mesh_agent_clustermesh_remote_cluster_state code=MESH-1200 state=ready target_cluster="+name)
	for _, code := range remotecluster.NoticeCodes() {
		all = append(all, "mesh_agent_clustermesh_remote_cluster_notice code="+string(code)+" target_cluster="+name)
	}
	for _, r := range wire.Resources() {
		exported := r != wire.EndpointSlices && r != wire.ServiceExports
		for _, s := range []string{"entries", "age_seconds", "sync_duration_seconds"} {
			if s == "sync_duration_seconds" && !exported {
				continue // its list did not run
			}
			all = append(all, "mesh_agent_clustermesh_remote_cluster_"+s+" resource="+string(r)+" target_cluster="+name)
		}
		if name == "c1" && exported { // for resources that had events
			all = append(all, "mesh_agent_clustermesh_remote_cluster_lag_seconds resource="+string(r)+" target_cluster="+name)
		}
	}
	return append(all, "mesh_agent_clustermesh_remote_cluster_rejected_entries reason=malformed resource=nodes target_cluster="+name)
}

func TestTheSeries(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	sources := store.NewMetrics()
	w := newWorldOn(t, sources, func(p *Params) {
		policy := disconnect.DefaultPolicy()
		etcdOf(p).Metrics, p.Policy = etcd.NewMetrics(reg), &policy
	})
	reg.MustRegister(NewCollector(w.mesh), sources)
	c1, c2 := w.remote("c1", 1), w.remote("c2", 2)
	for _, r := range []*remote{c1, c2} {
		r.put(r.key(wire.Nodes, "bad"), []byte("no node"))
		r.join()
	}
	w.inState("c1", remotecluster.Ready)
	w.inState("c2", remotecluster.Ready)
	c1.object(1, 2) // an event of each resource
	w.until("the events", func() bool { return strings.HasSuffix(c1.inView()["service ns/svc1"], " 8002") })

	want := []string{
		"mesh_agent_clustermesh_ready_without_clusters", "mesh_agent_clustermesh_remote_clusters", "mesh_agent_clustermesh_sessions",
		"mesh_agent_clustermesh_session_clusters", "mesh_agent_clustermesh_sessions_opened_total",
		"mesh_agent_clustermesh_ignored_files", "mesh_agent_clustermesh_directory_unreadable", "mesh_agent_clustermesh_policy_held",
	}
	for _, r := range wire.Resources() {
		want = append(want, "mesh_agent_store_queued_events resource="+string(r))
		if r != wire.EndpointSlices && r != wire.ServiceExports {
			want = append(want, "mesh_agent_store_event_propagation_seconds resource="+string(r))
		}
	}
	ours := func() []string {
		return slices.DeleteFunc(series(t, reg), func(s string) bool { return strings.HasPrefix(s, "mesh_agent_kvstore_") })
	}
	check := func(clusters ...string) {
		t.Helper()
		all := slices.Clone(want)
		for _, c := range clusters {
			all = append(all, perCluster(c)...)
		}
		slices.Sort(all)
		w.until("the series", func() bool { return slices.Equal(all, ours()) }, func() string { return cmp.Diff(all, ours()) })
	}
	check("c1", "c2")
	for _, s := range series(t, reg) {
		if strings.HasPrefix(s, "mesh_agent_kvstore_") && (strings.Contains(s, "c1") || strings.Contains(s, "c2")) {
			t.Errorf("a series of the kvstore names a cluster: %s", s)
		}
	}
	must(t, os.Remove(filepath.Join(w.dir, "c2")))
	w.gone("c2")
	check("c1")
}
