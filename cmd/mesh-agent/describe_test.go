package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

func aConflict() api.Conflict {
	return api.Conflict{
		Kind: "ip", Code: "MESH-3101", Subject: "10.2.1.10/32", Rule: "cluster ID 2 precedes 3", Clusters: []string{"c2", "c3"}, Since: now.Add(-time.Hour),
		Message: "two clusters claim 10.2.1.10/32: give their pods different ranges",
	}
}

func someEvents() []api.Event {
	return []api.Event{
		{ID: 7, Time: now.Add(-time.Hour), Cluster: "c2", Kind: "cluster-connected", Message: "connected to https://c2:2379", Evidence: map[string]string{}},
		{ID: 8, Time: now.Add(-time.Minute), Cluster: "c2", Kind: "conflict", Code: "MESH-1203", Message: "two clusters claim 10.2.1.10/32", Resource: "ips", Name: "10.2.1.10/32", Evidence: map[string]string{"winner": "c2"}},
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	a := newAgent(t, well("c2", 2), lost("c3"))
	tests := []struct {
		args     string
		code     int
		out, err string // what they contain; empty: nothing at all
	}{
		{"describe cluster c2", 0, "10.2.1.10/32 is claimed by c2 and c3", ""},
		{"describe cluster c3 -o json", 0, `"lastError": "connection refused"`, ""},
		{"describe clusters nope", 1, "", `there is no cluster "nope"`},
		{"describe node c2/n1", 0, "1 address", ""},
		{"describe node n1 -c c2 -o json", 0, `"endpoints": {`, ""},
		{"describe node n1", 1, "", "named CLUSTER/NAME"},
		{"describe service default/web", 0, "yes: shared by c2", ""},
		{"describe svc web -n default -o yaml", 0, "code: MESH-2000", ""},
		{"describe service default/nope", 1, "", "MESH-2100"},
		{"describe serviceexport c2/default/web", 0, "Who exports it (2)", ""},
		{"describe serviceexport web -c c2 -n default", 0, "ClientIP 10800s", ""},
		{"describe serviceexports default/web -c c4 -o json", 0, `"kind": "service-affinity"`, ""},
		{"describe serviceexport c2/default/nope", 1, "", "exports no service"},
		{"describe serviceexport web -n default", 1, "", "named CLUSTER/NAMESPACE/NAME"},
		{"describe serviceexport c2/default/web/x", 1, "", "named CLUSTER/NAMESPACE/NAME"},
		{"describe service default/web", 0, "the session affinity of its exports is", ""},
		{"describe identity 131072", 0, "Used by      1 address", ""},
		{"describe identity 131072 -o json", 0, `"prefix": "10.2.1.10/32"`, ""},
		{"describe ip 10.2.1.10", 0, "lost: cluster ID 2 precedes 3", ""},
		{"describe ip 10.2.1.10/32 -o json", 0, `"conflicts": [`, ""},
		{"describe ip 10.9.9.9", 1, "", "MESH-3004"},
		{"describe ip 10.9.9.9 -o json", 1, "MESH-3004", "nobody claims 10.9.9.9/32"},
		{"describe conflict ip/10.2.1.10/32", 0, "Who claims 10.2.1.10", ""},
		{"describe conflict ip/10.2.1.10/32 -o json", 0, `"lookup": {`, ""},
		{"describe conflict nonsense", 1, "", "named KIND/SUBJECT"},
		{"describe event 1", 0, "mesh-agent describe conflicts ip/10.2.1.10/32", ""},
		{"describe event 1 -o yaml", 0, "clusters: c2,c3", ""},
		{"describe health remote-cluster.c3", 0, "degraded, stale ", ""},
		{"describe health clustermesh -o json", 0, `"cluster": null`, ""},
		{"describe gremlin x", 2, "", "unknown resource"},
		{"describe cluster", 2, "", "want RESOURCE NAME"},
		{"describe cluster c2 -o wide", 2, "", "must be one of text, json, yaml"},
		{"describe cluster c2 -c c2", 2, "", "give either the NAME"},
		{"get conflicts -c c3", 0, "ip    MESH-3101  10.2.1.10/32  c2,c3", ""},
		{"get conflicts", 0, "service-affinity  MESH-2152  default/web   c2,c4", ""},
		{"get serviceexports", 0, "web   c2       ClusterSetIP  ClientIP 10800s  http=80/TCP", ""},
		{"get serviceexports -n default -c c4 -o name", 0, "c4/default/web\n", ""},
		{"get conflicts -c c9", 0, "", "No conflicts found."},
		{"get conflict ip/10.2.1.10/32 -o name", 0, "ip/10.2.1.10/32\n", ""},
		{"get events -c c2 -o wide", 0, "MESH-3101", ""},
		{"get event 1 -o json", 0, `"kind": "conflict"`, ""},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			got := a.ask(strings.Fields(test.args)...)
			if got.code != test.code || !contains(got.out, test.out) || !contains(got.err, test.err) {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got.code, test.code, got.out, got.err)
			}
		})
	}
}

// TestDescribeEventOffersWhatWorks, also for the own cluster, which is none of
// the list of clusters.
func TestDescribeEventOffersWhatWorks(t *testing.T) {
	t.Parallel()
	own := lost("c1")
	a := (&testMesh{clusters: []remotecluster.Status{lost("c3")}, local: &own}).serve(t)
	offers := 0
	var events struct{ Items []api.Event }
	if err := json.Unmarshal([]byte(a.ask("get", "events", "-o", "json").out), &events); err != nil {
		t.Fatal(err)
	}
	about := make(map[string]bool)
	for _, e := range events.Items {
		about[eventObject(e)] = true
		_, offered, found := strings.Cut(a.ask("describe", "event", strconv.FormatUint(e.ID, 10)).out, "→ mesh-agent ")
		if !found {
			continue
		}
		offers++
		if r := a.ask(strings.Fields(offered)...); r.code != exitOK {
			t.Errorf("%s: exit %d, %s", offered, r.code, r.err)
		}
	}
	if !about["health local-kvstore"] || !about["clusters c3"] || offers == 0 {
		t.Errorf("%d offers for %v", offers, about)
	}
}

// descriptions has one description of each kind.
func descriptions() map[string]description {
	c2, c3 := goodCluster("c2", 2), staleBy(failing(goodCluster("c3", 3), "degraded", "not connected since 00:52: EOF"), 10*time.Minute)
	conflict, events := aConflict(), someEvents()
	node := &api.Node{
		Cluster: "c2", ClusterID: 2, Name: "n1", PodCIDRs: []string{"10.2.1.0/24"}, HealthIPs: []string{"10.2.1.2"}, Identity: 6, EncryptionKey: 3,
		Addresses: []api.NodeAddress{{Type: "InternalIP", IP: "192.168.2.1"}, {Type: "ExternalIP", IP: "1.2.3.4"}, {Type: "CiliumInternalIP", IP: "10.2.1.1"}},
		Labels:    map[string]string{"zone": "a", "arch": "arm64"},
	}
	entry := api.IP{Prefix: "10.2.1.10/32", Cluster: "c2", ClusterID: 2, Identity: 131072, HostIP: "192.168.2.1", Namespace: "default", Pod: "web-0", Source: "clustermesh", Kind: "endpoint", Claims: 2}
	loser := entry
	loser.Cluster, loser.ClusterID, loser.Pod = "c3", 3, "other"
	identity := &api.Identity{ID: 131072, Cluster: "c2", ClusterID: 2, Labels: map[string]string{"k8s:app": "web", "k8s:tier": "front"}}
	lookup := &api.Lookup{
		IP: "10.2.1.10", Match: &entry, Identity: identity, Node: node, Services: []api.ServiceName{{Namespace: "default", Name: "web"}},
		Candidates: []api.Candidate{{Entry: entry, Won: true, Reason: "the winner: the strongest claim to the longest prefix"}, {Entry: loser, Reason: "lost: cluster ID 2 precedes 3"}},
		Freshness:  &c2.Freshness.IPs, Unconfirmed: []string{"c3"},
	}
	network := &api.IP{Prefix: "10.2.1.0/24", Cluster: "c2", ClusterID: 2, Identity: 6, HostIP: "192.168.2.1", Source: "clustermesh", Kind: "pod-cidr", Claims: 1}
	nodeEntry := api.IP{Cluster: "c2", Kind: "node", Claims: 1}
	foreign := api.IP{Cluster: "c3", Kind: "node", Claims: 2}
	port := []api.Port{{Name: "http", Protocol: "TCP", Port: 80}, {Protocol: "UDP", Port: 53}}
	service := &api.Service{
		Namespace: "default", Name: "web", Global: true, Affinity: "remote",
		Clusters: []api.ServiceCluster{
			{Cluster: "c2", Shared: true, Backends: 1, Reason: "shared by c2 with 1 backend"},
			{Cluster: "c3", Backends: 1, Reason: "not shared: c3 publishes it with shared=false, so its 1 backend are not used; not confirmed since 2026-11-21T00:52:03Z"},
		},
		Backends: []api.Backend{{IP: "10.2.1.10", Cluster: "c2", Ports: port, Zone: "a", Preferred: true}},
	}
	x := &reasons.Explanation{
		Verdict: reasons.Verdict{Code: codes.ServiceGlobal, Text: "global: shared by c2; 1 backend is in use"},
		Steps: []reasons.Step{
			{Code: codes.PartUsed, Cluster: "c2", Text: "shared by c2 with 1 backend", AsOf: before(400 * time.Millisecond), Keys: []reasons.Key{{Key: "cilium/state/services/v1/c2/default/web", Revision: 123, Read: before(time.Hour)}}},
			{Code: codes.PartUnknown, Cluster: "c3", Text: "may have it: its services: not confirmed since 2026-11-21T00:52:03Z", Keys: []reasons.Key{}},
		},
	}
	for i := range 9 {
		x.Steps = append(x.Steps, reasons.Step{Code: codes.PartNotExported, Cluster: fmt.Sprintf("d%d", i), Text: "does not export it", AsOf: before(time.Second)})
	}
	export := api.ServiceExport{
		Cluster: "c2", Namespace: "default", Name: "web", Type: "ClusterSetIP", SessionAffinity: "ClientIP", SessionAffinityTimeoutSeconds: 10800,
		Ports: port, Created: now.Add(-26 * time.Hour).UTC(),
	}
	exporter := c2
	exporter.Freshness.ServiceExports = c2.Freshness.Services
	rival := export
	rival.Cluster, rival.SessionAffinity, rival.SessionAffinityTimeoutSeconds, rival.Created = "c3", "None", 0, now.Add(-time.Hour).UTC()
	differ := api.Conflict{
		Kind: "service-affinity", Code: "MESH-2152", Subject: "default/web", Rule: "the oldest export counts", Clusters: []string{"c2", "c3"}, Since: now.Add(-time.Hour),
		Message: "default/web: the session affinity of its exports is ClientIP for 10800 s in c2, None in c3",
	}
	return map[string]description{
		"cluster":     &clusterDescription{&c3, nil, []api.Health{{Name: "remote-cluster.c3", Cluster: "c3", State: "degraded", Message: "not connected", LastFailure: before(time.Second), ConsecutiveFailures: 3}}, []api.Conflict{conflict}, events},
		"node":        &nodeDescription{node, &c2, []ownAddress{{node.Addresses[0], &nodeEntry}, {node.Addresses[1], nil}, {node.Addresses[2], &foreign}}, &addressCount{37, true}, nil},
		"service":     &serviceDescription{service, x, []api.Conflict{conflict}},
		"export":      &exportDescription{&export, []api.ServiceExport{export, rival}, &exporter, []api.Conflict{differ}},
		"identity":    &identityDescription{identity, []api.Identity{{ID: 131072, Cluster: "c9"}}, &c2, addressCount{1, false}, []api.IP{entry}, nil},
		"ip":          &ipDescription{&entry, lookup, []api.Conflict{conflict}},
		"ip-network":  &ipDescription{network, &api.Lookup{IP: "10.2.1.0", Match: &entry, Candidates: lookup.Candidates}, nil},
		"conflict":    &conflictDescription{&conflict, []api.Cluster{c2, c3}, lookup},
		"event":       &eventDescription{&events[1], &c2, true},
		"health":      &healthDescription{&api.Health{Name: "remote-cluster.c3", Cluster: "c3", State: "degraded", Message: "not connected", LastSuccess: before(time.Minute)}, &c3, events},
		"health-none": &healthDescription{Health: &api.Health{Name: "clustermesh", State: "ok", Message: "running"}},
	}
}

func TestDescriptionText(t *testing.T) {
	t.Parallel()
	for name, d := range descriptions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			p := printer.NewPage(&out, printer.Style{})
			d.page(p, now)
			if err := p.Flush(); err != nil {
				t.Fatal(err)
			}
			golden(t, "describe-"+name, out.String())
			out.Reset()
			p = printer.NewPage(&out, printer.Style{Color: true, Width: 80})
			d.page(p, now)
			if err := p.Flush(); err != nil || !strings.Contains(out.String(), "\x1b[") && name != "identity" && name != "event" && name != "ip-network" {
				t.Errorf("%v: no colours on a terminal:\n%s", err, out.String())
			}
		})
	}
}

// TestExportsAreNoTroubleOfACluster: they are shown where it has any, and a cluster
// is no less fresh while they are not there.
func TestExportsAreNoTroubleOfACluster(t *testing.T) {
	t.Parallel()
	c, yes := goodCluster("c2", 2), true
	names := func() (all []string) {
		for _, r := range resourceRows(&c) {
			all = append(all, r.name)
		}
		return all
	}
	c.Freshness.ServiceExports = api.Freshness{State: "synced", AsOf: before(time.Second)}
	if all := names(); slices.Contains(all, "serviceExports") {
		t.Errorf("a cluster without exports shows %v", all)
	}
	c.Capabilities.ServiceExportsEnabled, c.Freshness.ServiceExports = &yes, api.Freshness{State: "unknown", Message: "the canary is missing"}
	if all := names(); !slices.Contains(all, "serviceExports") {
		t.Errorf("a cluster with exports shows %v", all)
	}
	var out strings.Builder
	p := printer.NewPage(&out, printer.Style{})
	pageCluster(p, &c, time.Now())
	if err := p.Flush(); err != nil || !strings.Contains(out.String(), "serviceExports: the canary is missing") {
		t.Errorf("%v: not said why there are none:\n%s", err, out.String())
	}
	if text := freshnessText(c); text != "synced 0.4s" || !c.Well() || !c.Fresh() || !c.Complete() {
		t.Errorf("freshness %q, well %t, fresh %t, complete %t", text, c.Well(), c.Fresh(), c.Complete())
	}
}
