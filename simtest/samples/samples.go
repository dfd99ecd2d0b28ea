// Package samples has statuses and clusters like those in an agent's answers, for the tests of commands' output, and
// compares the output with golden files.
package samples

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/summary"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// SettingsFile writes a settings file and returns its path.
func SettingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Now is the present time in all samples.
var Now = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

// Before is a moment before now.
func Before(d time.Duration) *time.Time { return new(Now.Add(-d)) }

// GoodCluster is a cluster without problems.
func GoodCluster(name string, id uint32) api.Cluster {
	fresh := api.Freshness{State: "synced", AsOf: Before(400 * time.Millisecond), AgeSeconds: new(0.4)}
	return api.Cluster{
		Name: name, ID: id, State: "ready", Ready: true, Connected: true,
		Endpoints: []string{"https://" + name + ".mesh:2379"}, EtcdClusterID: "cdf818194e3a8c32", ConfigFile: "/var/lib/cilium/clustermesh/" + name,
		Capabilities:   api.Capabilities{SyncedCanaries: new(true), MaxConnectedClusters: new(uint32(255))},
		Synced:         api.ByResource[bool]{Nodes: true, Services: true, Identities: true, IPs: true},
		Counts:         api.ByResource[int]{Nodes: 3, Services: 40, Identities: 200, IPs: 1200},
		Freshness:      ofAll(fresh),
		ConnectedSince: Before(time.Hour), LastEvent: Before(2 * time.Second),
	}
}

// Noticed are healthy clusters with a notice of a future problem.
func Noticed() []api.Cluster {
	ends := func(d time.Duration) api.Notice {
		return api.Notice{Code: "MESH-1231", Message: "the client certificate expires at " + Before(-d).Format(time.RFC3339), Remedy: "Renew the certificate."}
	}
	all := []api.Cluster{GoodCluster("faro", 2), GoodCluster("genoa", 3), GoodCluster("hilo", 4)}
	for i := range all[:2] {
		all[i].Certificates, all[i].EtcdVersion = api.Certificates{Client: Before(-20 * 24 * time.Hour), Server: Before(-400 * 24 * time.Hour), Authority: Before(-4000 * 24 * time.Hour)}, "3.5.29"
		all[i].Notices = []api.Notice{ends(20 * 24 * time.Hour)}
	}
	all[1].Notices = append(all[1].Notices, api.Notice{Code: "MESH-1230", Message: "its etcd 3.5.29 has known faults, and 3.5.33 has none of them: it can lose writes", Remedy: "Upgrade the etcd."})
	return all
}

// StaleBy returns the cluster with all data unconfirmed for this long.
func StaleBy(c api.Cluster, d time.Duration) api.Cluster {
	c.Freshness = ofAll(api.Freshness{State: "stale", AsOf: Before(d), AgeSeconds: new(d.Seconds())})
	return c
}

func ofAll(f api.Freshness) api.ClusterFreshness {
	return api.ClusterFreshness{ByResource: api.ByResource[api.Freshness]{Nodes: f, Services: f, Identities: f, IPs: f}}
}

// Failing returns the cluster in a bad state, with its reason.
func Failing(c api.Cluster, state, message string) api.Cluster {
	c.State, c.Ready, c.Connected, c.ConnectedSince, c.Message = state, false, false, nil, message
	c.Failures, c.LastFailure, c.LastError = 23, Before(5*time.Second), message
	return c
}

// NeverSeen is a cluster that was never connected.
func NeverSeen(name, state, message string) api.Cluster {
	c := Failing(api.Cluster{Name: name}, state, message)
	c.Freshness = ofAll(api.Freshness{State: "unknown"})
	return c
}

// OneOfEach is a mesh with one cluster in each state.
func OneOfEach() []api.Cluster {
	syncing := NeverSeen("berlin", "syncing", "listing ips: 4711 so far")
	syncing.Connected, syncing.ID, syncing.Failures = true, 4, 0
	rejecting := GoodCluster("osaka", 7)
	rejecting.Rejected = api.ByResource[int]{Nodes: 1, IPs: 12}
	rejecting.Refusals = []api.Refusal{Refused("osaka", wire.IPs, map[string]int{"key": 12}), Refused("osaka", wire.Nodes, map[string]int{"malformed": 1})}
	rejecting.Refusals[1].Key, rejecting.Refusals[1].Message = "cilium/state/nodes/v1/osaka/n1", "malformed: unexpected end of JSON input"
	weak := GoodCluster("oslo", 8)
	weak.State, weak.Message = "degraded", "no heartbeat for 3m10s: etcd answers, but the cluster's writer may be gone"
	removing := GoodCluster("quito", 10)
	removing.State, removing.Ready, removing.Message = "removing", false, "its file is gone; its entries are being withdrawn"
	return []api.Cluster{
		GoodCluster("accra", 2),
		syncing,
		NeverSeen("cairo", "connecting", "dial tcp 10.0.0.1:2379: connect: connection refused"),
		StaleBy(Failing(GoodCluster("dakar", 5), "degraded", "not connected since 00:52: EOF"), 10*time.Minute),
		NeverSeen("delhi", "failed", "the client file cannot be used: endpoints are missing"),
		rejecting,
		weak,
		StaleBy(GoodCluster("paris", 9), 95*time.Second),
		removing,
		GoodCluster("zagreb", 12),
	}
}

// Refused are entries of a cluster that are refused for these reasons.
func Refused(cluster string, r wire.Resource, reasons map[string]int) api.Refusal {
	refusal := api.Refusal{Resource: string(r), Reasons: reasons, Remedies: make(map[string]string)}
	for reason, n := range reasons {
		refusal.Count += n
		refusal.Remedies[reason] = remotecluster.RefusalRemedy(cluster, r, wire.Reason(reason))
	}
	return refusal
}

// Policed are clusters that the disconnect policy affects.
func Policed() []api.Cluster {
	with := func(c api.Cluster, p api.ClusterPolicy) api.Cluster {
		p.Judged = 4
		c.Policy = &p
		return c
	}
	away := func(name string, id uint32, d time.Duration) api.Cluster {
		return StaleBy(Failing(GoodCluster(name, id), "degraded", "not connected: connection refused"), d)
	}
	const doubt = "its services could not be confirmed since 2026-11-21T00:52:03Z: connection refused"
	in := func(d time.Duration) *time.Time { return Before(-d) }
	return []api.Cluster{
		with(GoodCluster("accra", 2), api.ClusterPolicy{State: api.PolicyKeep, Since: *Before(time.Hour)}),
		with(away("bergen", 3, time.Minute), api.ClusterPolicy{
			State: api.PolicyKeep, Since: *Before(time.Hour), Doubtful: true, Reason: doubt, Next: api.PolicyDemote, NextAt: in(time.Minute),
		}),
		with(away("colombo", 4, 10*time.Minute), api.ClusterPolicy{
			State: api.PolicyDemote, Since: *Before(8 * time.Minute), Code: "MESH-1018", Doubtful: true, Reason: doubt, Next: api.PolicyWithdraw, NextAt: in(5 * time.Minute),
		}),
		with(GoodCluster("denver", 5), api.ClusterPolicy{
			State: api.PolicyWithdraw, Since: *Before(20 * time.Minute), Code: "MESH-1019",
			Reason: "confirmed again without a break since 2026-11-21T01:01:43Z", Next: api.PolicyKeep, NextAt: in(10 * time.Second),
		}),
	}
}

// Caused are two clusters with a known cause, and one that is well.
func Caused() []api.Cluster {
	caused := func(c api.Cluster) api.Cluster {
		c.Code, c.Cause = "MESH-1206", "MESH-6203"
		c.Message = "not connected since 2026-11-21T00:52:03Z; its data is kept: kvstore connect \"https://" + c.Name + ".mesh:2379\": dial tcp 10.0.0.1:2379: connect: connection refused; trying again at 2026-11-21T01:02:13Z"
		return c
	}
	return []api.Cluster{
		GoodCluster("accra", 2), caused(StaleBy(Failing(GoodCluster("lagos", 3), "degraded", ""), 10*time.Minute)),
		caused(StaleBy(Failing(GoodCluster("tunis", 4), "degraded", ""), 95*time.Second)),
	}
}

// HeldClusters are four clusters, three of which are in doubt at the same time.
func HeldClusters() []api.Cluster {
	clusters := Policed()
	for i := range clusters {
		p := clusters[i].Policy
		p.Held, p.InDoubt, p.Next, p.NextAt = Before(30*time.Second), 3, "", nil
	}
	return clusters
}

// StatusOf is the status of an agent with these clusters.
func StatusOf(clusters []api.Cluster) *api.Status {
	clusters = slices.Clone(clusters) // tests share them
	st := &api.Status{
		Agent: api.AgentInfo{Version: "v1.2.3", Cluster: "home", ClusterID: 1, Node: "node-1", Started: *Before(3*time.Hour + 12*time.Minute), Mode: "run"},
		State: "ready", Ready: true, Clusters: clusters,
		Summary: api.Summary{Clusters: len(clusters), Nodes: 12, Services: 40, GlobalServices: 38, Identities: 1, IPs: 10234, Conflicts: 2},
	}
	defer summary.SumUp(st)
	for i := range clusters {
		clusters[i].Assess()
		if clusters[i].Ready {
			st.Summary.ClustersReady++
		}
		if !clusters[i].Well() {
			st.State = "degraded"
		}
	}
	return st
}

// AddOwn makes a cluster like this one the own one of the status, as its kvstore shows it.
func AddOwn(st *api.Status, c api.Cluster) {
	c.Capabilities = api.Capabilities{EndpointSlicesExportMode: new(wire.EndpointSlicesBoth), ServiceExportsEnabled: new(true)}
	c.Synced.EndpointSlices, c.Freshness.EndpointSlices = c.Synced.Services, c.Freshness.Services
	c.Failures, c.LastFailure = 23, Before(5*time.Second)
	c.Assess()
	st.OwnCluster, st.KVStore = &c, &api.KVStore{
		State: c.State, Ready: c.Ready, Connected: c.Connected, Message: c.Message, Endpoints: []string{"https://etcd:2379"}, HeartbeatAgeSeconds: c.HeartbeatAgeSeconds,
	}
	summary.SumUp(st)
}

// ManyClusters is a mesh of 254 clusters, some of which the function changes.
func ManyClusters(name string, change func(i int, c api.Cluster) api.Cluster) []api.Cluster {
	clusters := make([]api.Cluster, 254)
	for i := range clusters {
		clusters[i] = change(i, GoodCluster(fmt.Sprintf(name, i), uint32(i+2)))
	}
	return clusters
}

// Exporting is a cluster that exports services in this form, with the given freshness of both forms.
func Exporting(name, mode string, services, slices api.Freshness) api.Cluster {
	c := GoodCluster(name, 20)
	c.Capabilities.EndpointSlicesExportMode = &mode
	c.Freshness.Services, c.Freshness.EndpointSlices = services, slices
	c.Synced.Services, c.Synced.EndpointSlices = services.State != "syncing", slices.State != "syncing"
	return c
}

var update = flag.Bool("update", false, "write the golden files")

// Golden compares a text with the golden file of this name, or writes it with -update.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}

// Fits checks that a text is not wider than the terminal, and not higher than a screen
// unless all is set.
func Fits(t *testing.T, text string, style printer.Style, all bool) {
	t.Helper()
	if style.Width == 0 || style.Color {
		return
	}
	lines := strings.Split(text, "\n")
	if !all && len(lines) > 68 { // with every kind of problem at once
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len([]rune(line)) > style.Width {
			t.Errorf("wider than %d: %s", style.Width, line)
		}
	}
}
