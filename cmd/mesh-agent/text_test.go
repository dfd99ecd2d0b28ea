package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

var now = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

func golden(t *testing.T, name, got string) {
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

func before(d time.Duration) *time.Time {
	t := now.Add(-d)
	return &t
}

// goodCluster is a cluster with nothing wrong.
func goodCluster(name string, id uint32) api.Cluster {
	age, fresh := 0.4, api.Freshness{State: "synced", AsOf: before(400 * time.Millisecond)}
	fresh.AgeSeconds = &age
	yes, max := true, uint32(255)
	return api.Cluster{
		Name: name, ID: id, State: "ready", Ready: true, Connected: true,
		Endpoints: []string{"https://" + name + ".mesh:2379"}, EtcdClusterID: "cdf818194e3a8c32", ConfigFile: "/var/lib/cilium/clustermesh/" + name,
		Capabilities:   api.Capabilities{SyncedCanaries: &yes, MaxConnectedClusters: &max},
		Synced:         api.ByResource[bool]{Nodes: true, Services: true, Identities: true, IPs: true},
		Counts:         api.ByResource[int]{Nodes: 3, Services: 40, Identities: 200, IPs: 1200},
		Freshness:      api.ByResource[api.Freshness]{Nodes: fresh, Services: fresh, Identities: fresh, IPs: fresh},
		ConnectedSince: before(time.Hour), LastEvent: before(2 * time.Second),
	}
}

func staleBy(c api.Cluster, d time.Duration) api.Cluster {
	age := d.Seconds()
	f := api.Freshness{State: "stale", AsOf: before(d), AgeSeconds: &age}
	c.Freshness = api.ByResource[api.Freshness]{Nodes: f, Services: f, Identities: f, IPs: f}
	return c
}

func failing(c api.Cluster, state, message string) api.Cluster {
	c.State, c.Ready, c.Connected, c.ConnectedSince, c.Message = state, false, false, nil, message
	c.Failures, c.LastFailure, c.LastError = 23, before(5*time.Second), message
	return c
}

func neverSeen(name, state, message string) api.Cluster {
	c := failing(api.Cluster{Name: name}, state, message)
	f := api.Freshness{State: "unknown"}
	c.Freshness = api.ByResource[api.Freshness]{Nodes: f, Services: f, Identities: f, IPs: f}
	return c
}

// oneOfEach is a mesh in which everything goes wrong that can.
func oneOfEach() []api.Cluster {
	syncing := neverSeen("berlin", "syncing", "listing ips: 4711 so far")
	syncing.Connected, syncing.ID, syncing.Failures = true, 4, 0
	rejecting := goodCluster("osaka", 7)
	rejecting.Rejected = api.ByResource[int]{Nodes: 1, IPs: 12}
	rejecting.Refusals = []api.Refusal{
		{Resource: "ips", Count: 12, Reasons: map[string]int{"key": 12}},
		{
			Resource: "nodes", Count: 1, Reasons: map[string]int{"malformed": 1},
			Key: "cilium/state/nodes/v1/osaka/n1", Message: "malformed: unexpected end of JSON input",
		},
	}
	weak := goodCluster("oslo", 8)
	weak.State, weak.Message = "degraded", "no heartbeat for 3m10s: etcd answers, but the cluster's writer may be gone"
	removing := goodCluster("quito", 10)
	removing.State, removing.Ready, removing.Message = "removing", false, "its file is gone; its entries are being withdrawn"
	return []api.Cluster{
		goodCluster("accra", 2),
		syncing,
		neverSeen("cairo", "connecting", "dial tcp 10.0.0.1:2379: connect: connection refused"),
		staleBy(failing(goodCluster("dakar", 5), "degraded", "not connected since 00:52: EOF"), 10*time.Minute),
		neverSeen("delhi", "failed", "the client file cannot be used: endpoints are missing"),
		rejecting,
		weak,
		staleBy(goodCluster("paris", 9), 95*time.Second),
		removing,
		goodCluster("zagreb", 12),
	}
}

// policed are clusters of which the policy says something.
func policed() []api.Cluster {
	with := func(c api.Cluster, p api.ClusterPolicy) api.Cluster {
		p.Judged = 4
		c.Policy = &p
		return c
	}
	away := func(name string, id uint32, d time.Duration) api.Cluster {
		return staleBy(failing(goodCluster(name, id), "degraded", "not connected: connection refused"), d)
	}
	const doubt = "its services could not be confirmed since 2026-11-21T00:52:03Z: connection refused"
	in := func(d time.Duration) *time.Time { return before(-d) }
	return []api.Cluster{
		with(goodCluster("accra", 2), api.ClusterPolicy{State: api.PolicyKeep, Since: *before(time.Hour)}),
		with(away("bergen", 3, time.Minute), api.ClusterPolicy{
			State: api.PolicyKeep, Since: *before(time.Hour), Doubtful: true, Reason: doubt, Next: api.PolicyDemote, NextAt: in(time.Minute),
		}),
		with(away("colombo", 4, 10*time.Minute), api.ClusterPolicy{
			State: api.PolicyDemote, Since: *before(8 * time.Minute), Code: "MESH-1018", Doubtful: true, Reason: doubt, Next: api.PolicyWithdraw, NextAt: in(5 * time.Minute),
		}),
		with(goodCluster("denver", 5), api.ClusterPolicy{
			State: api.PolicyWithdraw, Since: *before(20 * time.Minute), Code: "MESH-1019",
			Reason: "confirmed again without a break since 2026-11-21T01:01:43Z", Next: api.PolicyKeep, NextAt: in(10 * time.Second),
		}),
	}
}

// heldClusters are three of four in doubt at once.
func heldClusters() []api.Cluster {
	clusters := policed()
	for i := range clusters {
		p := clusters[i].Policy
		p.Held, p.InDoubt, p.Next, p.NextAt = before(30*time.Second), 3, "", nil
	}
	return clusters
}

func statusOf(clusters []api.Cluster) *api.Status {
	st := &api.Status{
		Agent: api.AgentInfo{Version: "v1.2.3", Cluster: "home", ClusterID: 1, Node: "node-1", Started: *before(3*time.Hour + 12*time.Minute), Mode: "run"},
		State: "ready", Ready: true, Clusters: clusters,
		Summary: api.Summary{Clusters: len(clusters), Nodes: 12, Services: 40, GlobalServices: 38, Identities: 1, IPs: 10234, Conflicts: 2},
	}
	for i := range clusters {
		if clusters[i].Ready {
			st.Summary.ClustersReady++
		}
		if !clusters[i].Well() {
			st.State = "degraded"
		}
	}
	return st
}

// kvstoreOf is the local kvstore of an own cluster that is like this one.
func kvstoreOf(c api.Cluster, heartbeat *float64) *api.KVStore {
	k := &api.KVStore{
		State: c.State, Ready: c.Ready, Connected: c.Connected, Message: c.Message, Endpoints: []string{"https://etcd:2379"},
		HeartbeatAgeSeconds: heartbeat, Synced: c.Synced, Freshness: c.Freshness,
		Failures: 23, LastFailure: before(5 * time.Second), LastError: "an error of long ago",
	}
	k.Synced.EndpointSlices, k.Freshness.EndpointSlices = k.Synced.Services, k.Freshness.Services
	return k
}

// TestWaitingHasTheKVStore: whatever is waited for, the own cluster is waited
// for too, unless another one was named.
func TestWaitingHasTheKVStore(t *testing.T) {
	t.Parallel()
	st := statusOf([]api.Cluster{goodCluster("accra", 2)})
	for goal, c := range map[string]api.Cluster{
		goalReady: oneOfEach()[2], goalSynced: oneOfEach()[1], goalFresh: staleBy(goodCluster("home", 1), time.Minute),
	} {
		st.KVStore = kvstoreOf(c, nil)
		want := fmt.Sprintf("the local kvstore to be %s (%s)", goal, stateText(&c))
		if got := missingFor(st, goal, ""); got != want {
			t.Errorf("%s: waits for %q, want %q", goal, got, want)
		}
		if got := missingFor(st, goal, "accra"); got != "" {
			t.Errorf("%s of accra: waits for %q", goal, got)
		}
		st.KVStore = kvstoreOf(goodCluster("home", 1), nil)
		if got := missingFor(st, goal, ""); got != "" {
			t.Errorf("%s: waits for %q, though all is well", goal, got)
		}
	}
}

// TestWhoIsNotKeptIsNotWell: it may be ready and fresh, and yet get no traffic.
func TestWhoIsNotKeptIsNotWell(t *testing.T) {
	t.Parallel()
	for _, c := range policed() {
		if got, want := c.Well(), c.Name == "accra"; got != want {
			t.Errorf("%s is well: %t, want %t", c.Name, got, want)
		}
	}
	want := "1 of 1 cluster to be fresh: denver (its service backends are not used as usual yet)"
	if got := missingFor(statusOf(policed()[3:]), goalFresh, ""); got != want {
		t.Errorf("waits for %q, want %q", got, want)
	}
}

// manyClusters is a mesh of 254, some of which are as the function says.
func manyClusters(name string, change func(i int, c api.Cluster) api.Cluster) []api.Cluster {
	clusters := make([]api.Cluster, 254)
	for i := range clusters {
		clusters[i] = change(i, goodCluster(fmt.Sprintf(name, i), uint32(i+2)))
	}
	return clusters
}

func TestStatusText(t *testing.T) {
	t.Parallel()
	away := func(c api.Cluster) api.Cluster {
		return staleBy(failing(c, "degraded", "not connected: connection refused"), time.Hour)
	}
	many := manyClusters("cluster-%03d", func(i int, c api.Cluster) api.Cluster {
		if i%100 == 50 {
			return away(c)
		}
		return c
	})
	// Names of 32 characters, and numbers as large as they come.
	wide := manyClusters("a-cluster-with-quite-a-long-n%03d", func(i int, c api.Cluster) api.Cluster {
		c.Counts.IPs, c.State = 12345678, "connecting"
		return staleBy(failing(c, "connecting", "not connected: connection refused"), 364*24*time.Hour+time.Duration(i)*time.Hour)
	})
	three := []api.Cluster{goodCluster("accra", 2), goodCluster("cairo", 3), neverSeen("delhi", "connecting", "dial tcp 10.0.0.1:2379: connect: connection refused")}
	terminal := printer.Style{Width: 80}
	heartbeat := 3.2
	tests := map[string]struct {
		clusters []api.Cluster
		style    printer.Style
		all      bool
		kvstore  *api.KVStore
	}{
		"status-none":           {clusters: nil},
		"status-one":            {clusters: three[:1]},
		"status-well":           {clusters: three[:2], kvstore: kvstoreOf(goodCluster("home", 1), &heartbeat)},
		"status-three":          {clusters: three, kvstore: kvstoreOf(neverSeen("home", "connecting", "dial tcp 10.0.0.9:2379: connect: connection refused"), nil)},
		"status-kvstore-stale":  {clusters: three[:1], kvstore: kvstoreOf(staleBy(goodCluster("home", 1), time.Minute), &heartbeat)},
		"status-kvstore-weak":   {clusters: three[:1], style: terminal, kvstore: kvstoreOf(oneOfEach()[6], &heartbeat)},
		"status-each":           {clusters: oneOfEach()},
		"status-terminal":       {clusters: three, style: printer.Style{Color: true, Width: 80}},
		"status-each-terminal":  {clusters: oneOfEach(), style: terminal},
		"status-policy":         {clusters: policed()},
		"status-policy-held":    {clusters: heldClusters(), style: terminal},
		"status-254":            {clusters: many},
		"status-254-terminal":   {clusters: many, style: terminal},
		"status-254-all":        {clusters: many, style: terminal, all: true},
		"status-254-down":       {clusters: wide, style: terminal},
		"status-254-well":       {clusters: manyClusters("c%03d", func(_ int, c api.Cluster) api.Cluster { return c }), style: terminal},
		"status-254-well-piped": {clusters: manyClusters("c%03d", func(_ int, c api.Cluster) api.Cluster { return c })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			st := statusOf(test.clusters)
			st.KVStore = test.kvstore
			if err := writeStatus(&out, test.style, statusView{Status: st, now: now, all: test.all}); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
			fits(t, out.String(), test.style, test.all)
		})
	}
}

// fits wants a text for a terminal to stay within it, and within a screen
// unless everything was asked for.
func fits(t *testing.T, text string, style printer.Style, all bool) {
	t.Helper()
	if style.Width == 0 || style.Color {
		return
	}
	lines := strings.Split(text, "\n")
	if !all && len(lines) > 64 { // with every kind of trouble at once
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len([]rune(line)) > style.Width {
			t.Errorf("wider than %d: %s", style.Width, line)
		}
	}
}

func TestClusterText(t *testing.T) {
	t.Parallel()
	text := printer.NewFormat(printer.Text)
	held := heldClusters()[2]
	held.Name = "held"
	for _, c := range append(append(oneOfEach(), policed()[1:]...), held) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := answer(&out, printer.Style{}, text, &c, func(p *printer.Page) { pageCluster(p, &c, now) }); err != nil {
				t.Fatal(err)
			}
			golden(t, "cluster-"+c.Name, out.String())
		})
	}
}

// TestTextsOfOthersAreHarmless: nothing that a remote wrote reaches a terminal
// as it is.
func TestTextsOfOthersAreHarmless(t *testing.T) {
	t.Parallel()
	text := printer.NewFormat(printer.Text)
	const evil = "a\x1b[2Jb"
	c := neverSeen(evil, "connecting", evil)
	c.Endpoints, c.EtcdClusterID, c.ConfigFile, c.LastError = []string{evil}, evil, evil, evil
	st := statusOf([]api.Cluster{c})
	st.Agent.Node, st.Agent.Version, st.State = evil, evil, evil
	l := &api.Lookup{
		IP:       "10.0.0.1",
		Match:    &api.IP{Prefix: "10.0.0.1/32", Cluster: evil, Namespace: evil, Pod: evil, Kind: "endpoint"},
		Identity: &api.Identity{Labels: map[string]string{evil: evil}},
		Node:     &api.Node{Cluster: evil, Name: evil},
		Services: []api.ServiceName{{Namespace: evil, Name: evil}},
	}
	nobodys := &api.Lookup{IP: "10.0.0.2", Services: l.Services}
	var out bytes.Buffer
	for _, err := range []error{
		writeStatus(&out, printer.Style{}, statusView{Status: st, now: now}),
		answer(&out, printer.Style{}, text, &c, func(p *printer.Page) { pageCluster(p, &c, now) }),
		answer(&out, printer.Style{}, text, l, func(p *printer.Page) { pageLookup(p, l, now) }),
		answer(&out, printer.Style{}, text, nobodys, func(p *printer.Page) { pageLookup(p, nobodys, now) }),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	p := newProgress(&out)
	p.show(evil)
	p.end()
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}

func TestLookupText(t *testing.T) {
	t.Parallel()
	text := printer.NewFormat(printer.Text)
	node := &api.Node{Cluster: "c2", Name: "n1"}
	entry := func(kind, prefix string) *api.IP {
		return &api.IP{Prefix: prefix, Cluster: "c2", ClusterID: 2, Identity: 6, HostIP: "192.168.2.1", Source: "clustermesh", Kind: kind, Claims: 1}
	}
	pod := entry("endpoint", "10.2.1.10/32")
	pod.Identity, pod.Namespace, pod.Pod, pod.EncryptionKey = 131072, "default", "web-0", 3
	loser := *pod
	loser.Cluster, loser.ClusterID, loser.Identity = "c3", 3, 196608
	external := entry("endpoint", "10.2.1.0/24")
	external.HostIP = ""
	tests := map[string]*api.Lookup{
		"lookup-nobody":  {IP: "10.9.9.9"},
		"lookup-backend": {IP: "10.9.9.9", Services: []api.ServiceName{{Namespace: "default", Name: "web"}}},
		"lookup-pod": {
			IP: "10.2.1.10", Match: pod, Node: node,
			Identity: &api.Identity{ID: 131072, Cluster: "c2", Labels: map[string]string{"k8s:app": "web", "k8s:tier": "front"}},
			Services: []api.ServiceName{{Namespace: "default", Name: "web"}, {Namespace: "default", Name: "api"}},
			Candidates: []api.Candidate{
				{Entry: *pod, Won: true, Reason: "the winner: the strongest claim to the longest prefix"},
				{Entry: loser, Reason: "lost: cluster ID 2 precedes 3"},
				{Entry: *entry("pod-cidr", "10.2.1.0/24"), Reason: "lost: a shorter prefix than 10.2.1.10/32"},
			},
		},
		"lookup-node":     {IP: "192.168.2.1", Match: entry("node", "192.168.2.1/32"), Node: node, Identity: &api.Identity{ID: 6, Labels: map[string]string{"reserved:remote-node": ""}}},
		"lookup-pod-cidr": {IP: "10.2.1.77", Match: entry("pod-cidr", "10.2.1.0/24"), Node: node},
		"lookup-cidr":     {IP: "10.2.1.77", Match: external},
		"lookup-homeless": {IP: "10.2.1.2", Match: entry("health", "10.2.1.2/32")},
		"lookup-ingress":  {IP: "10.2.1.3", Match: entry("ingress", "10.2.1.3/32"), Node: node},
	}
	for name, l := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := answer(&out, printer.Style{}, text, l, func(p *printer.Page) { pageLookup(p, l, now) }); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
		})
	}
}

// TestEndpointSlicesAreShown wherever the resources of a cluster are listed, and
// are no row for a cluster that has none.
func TestEndpointSlicesAreShown(t *testing.T) {
	t.Parallel()
	age := 95.0
	stale := api.Freshness{State: "stale", AsOf: before(95 * time.Second), AgeSeconds: &age}
	c := exporting("kyoto", wire.EndpointSlicesBoth, goodCluster("", 0).Freshness.Services, stale)
	c.Counts.EndpointSlices, c.Rejected.EndpointSlices = 77, 5
	if got := freshnessText(c); got != "stale 1m35s" {
		t.Errorf("freshness %q", got)
	}
	if got := sum(c.Counts); got != 3+40+77+200+1200 {
		t.Errorf("%d entries", got)
	}
	named := func(c *api.Cluster) (names []string) {
		for _, r := range resourceRows(c) {
			names = append(names, r.name)
		}
		return names
	}
	if got := strings.Join(named(&c), " "); got != "nodes services endpointSlices identities ips" {
		t.Errorf("rows: %s", got)
	}
	for _, state := range []string{"", "unknown", "synced"} {
		none := exporting("kyoto", wire.EndpointSlicesServicesOnly, c.Freshness.Services, api.Freshness{State: state})
		if got := strings.Join(named(&none), " "); got != "nodes services identities ips" || freshnessText(none) != "synced 0.4s" {
			t.Errorf("slices %q: rows %s, %s", state, got, freshnessText(none))
		}
	}
}

// TestAMissingMeshDirectoryIsNoFileToRename.
func TestAMissingMeshDirectoryIsNoFileToRename(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := printer.NewPage(&out, printer.Style{})
	writeIgnored(p, "/mesh/", []clustermesh.Ignored{{File: "/mesh", Reason: "it does not exist"}})
	if err := p.Flush(); err != nil || !strings.Contains(out.String(), "The mesh directory cannot be read") || strings.Contains(out.String(), "Rename") {
		t.Errorf("%v %s", err, out.String())
	}
}

// exporting is a cluster that exports services in this form, and both of which
// are as given.
func exporting(name, mode string, services, slices api.Freshness) api.Cluster {
	c := goodCluster(name, 20)
	c.Capabilities.EndpointSlicesExportMode = &mode
	c.Freshness.Services, c.Freshness.EndpointSlices = services, slices
	c.Synced.Services, c.Synced.EndpointSlices = services.State != "syncing", slices.State != "syncing"
	return c
}
