package describe

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

// descriptions has one description of each kind.
func descriptions() map[string]description {
	c2, c3 := samples.GoodCluster("c2", 2), samples.StaleBy(samples.Failing(samples.GoodCluster("c3", 3), "degraded", "not connected since 00:52: EOF"), 10*time.Minute)
	c2.Assess()
	c3.Assess()
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
	x := &api.Explanation{
		Verdict: api.Verdict{Code: codes.ServiceGlobal, Text: "global: shared by c2; 1 backend is in use"},
		Steps: []api.Step{
			{Code: codes.PartUsed, Cluster: "c2", Text: "shared by c2 with 1 backend", AsOf: samples.Before(400 * time.Millisecond), Keys: []api.Key{{Key: "cilium/state/services/v1/c2/default/web", Revision: 123, Read: samples.Before(time.Hour)}}},
			{Code: codes.PartUnknown, Cluster: "c3", Text: "may have it: its services: not confirmed since 2026-11-21T00:52:03Z", Keys: []api.Key{}},
		},
	}
	for i := range 9 {
		x.Steps = append(x.Steps, api.Step{Code: codes.PartNotExported, Cluster: fmt.Sprintf("d%d", i), Text: "does not export it", AsOf: samples.Before(time.Second)})
	}
	export := api.ServiceExport{
		Cluster: "c2", Namespace: "default", Name: "web", Type: "ClusterSetIP", SessionAffinity: "ClientIP", SessionAffinityTimeoutSeconds: 10800,
		Ports: port, Created: samples.Now.Add(-26 * time.Hour).UTC(),
	}
	exporter := c2
	exporter.Freshness.ServiceExports = c2.Freshness.Services
	rival := export
	rival.Cluster, rival.SessionAffinity, rival.SessionAffinityTimeoutSeconds, rival.Created = "c3", "None", 0, samples.Now.Add(-time.Hour).UTC()
	differ := api.Conflict{
		Kind: "service-affinity", Code: "MESH-2152", Subject: "default/web", Rule: "the oldest export counts", Clusters: []string{"c2", "c3"}, Since: samples.Now.Add(-time.Hour),
		Message: "default/web: the session affinity of its exports is ClientIP for 10800 s in c2, None in c3",
	}
	chosen := func(cluster, ip, zone string) api.ChosenBackend {
		return api.ChosenBackend{Cluster: cluster, IP: ip, Zone: zone, Ports: port}
	}
	connected := &api.ServiceBackends{
		Namespace: "default", Name: "web", Zone: "eu-1a", Port: "http", Affinity: "local", Unconfirmed: []string{"c3"},
		Groups: []api.BackendGroup{
			{Use: "full", Side: "local", Near: "zone", Backends: []api.ChosenBackend{chosen("c1", "10.1.1.10", "eu-1a")}, Draining: []api.ChosenBackend{chosen("c1", "10.1.1.11", "eu-1a")}},
			{Use: "full", Side: "remote", Near: "anywhere", Backends: []api.ChosenBackend{chosen("c2", "10.2.1.10", "eu-1b")}},
			{Use: "demoted", Side: "remote", Near: "anywhere", Backends: []api.ChosenBackend{chosen("c3", "10.3.1.10", "")}},
		},
	}
	return map[string]description{
		"cluster":     &clusterDescription{&c3, lossOfOne(), nil, []api.Health{{Name: "remote-cluster.c3", Cluster: "c3", State: "degraded", Message: "not connected", LastFailure: samples.Before(time.Second), ConsecutiveFailures: 3}}, []api.Conflict{conflict}, events},
		"node":        &nodeDescription{node, &c2, []ownAddress{{node.Addresses[0], &nodeEntry}, {node.Addresses[1], nil}, {node.Addresses[2], &foreign}}, &addressCount{37, true}, nil},
		"service":     &serviceDescription{service, x, []api.Conflict{conflict}, nil},
		"connections": &serviceDescription{service, nil, nil, connected},
		"export":      &exportDescription{&export, []api.ServiceExport{export, rival}, &exporter, []api.Conflict{differ}},
		"identity":    &identityDescription{identity, []api.Identity{{ID: 131072, Cluster: "c9"}}, &c2, addressCount{1, false}, []api.IP{entry}, nil},
		"ip":          &ipDescription{&entry, lookup, []api.Conflict{conflict}},
		"ip-network":  &ipDescription{network, &api.Lookup{IP: "10.2.1.0", Match: &entry, Candidates: lookup.Candidates}, nil},
		"conflict":    &conflictDescription{&conflict, []api.Cluster{c2, c3}, lookup},
		"event":       &eventDescription{&events[1], &c2, true},
		"health":      &healthDescription{&api.Health{Name: "remote-cluster.c3", Cluster: "c3", State: "degraded", Message: "not connected", LastSuccess: samples.Before(time.Minute)}, &c3, events},
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
			d.page(p, samples.Now)
			if err := p.Flush(); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, "describe-"+name, out.String())
			out.Reset()
			p = printer.NewPage(&out, printer.Style{Color: true, Width: 80})
			d.page(p, samples.Now)
			if err := p.Flush(); err != nil || !strings.Contains(out.String(), "\x1b[") && name != "identity" && name != "event" && name != "ip-network" {
				t.Errorf("%v: no colours on a terminal:\n%s", err, out.String())
			}
		})
	}
}

func TestEveryKindHasASubject(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"clusters", "nodes", "svc", "serviceexports", "identity", "ip", "conflicts", "event", "health"} {
		s, err := findSubject(kind)
		if _, none := s.(plain); err != nil || none {
			t.Errorf("%s: %T, %v", kind, s, err)
		}
	}
	for _, kind := range resource.All() {
		if s, all := subjectAmong(nil, kind, "x").(plain); !all {
			t.Errorf("without one of its own: %T", s)
		}
	}
	if _, err := findSubject("gateways"); err == nil {
		t.Error("there is a description of what does not exist")
	}
}

// aConflict is a conflict about an address.
func aConflict() api.Conflict {
	return api.Conflict{
		Kind: "ip", Code: "MESH-3101", Subject: "10.2.1.10/32", Rule: "cluster ID 2 precedes 3", Clusters: []string{"c2", "c3"}, Since: samples.Now.Add(-time.Hour),
		Message: "two clusters claim 10.2.1.10/32: give their pods different ranges",
	}
}

// someEvents are two events.
func someEvents() []api.Event {
	return []api.Event{
		{ID: 7, Time: samples.Now.Add(-time.Hour), Cluster: "c2", Kind: "cluster-connected", Message: "connected to https://c2:2379", Evidence: map[string]string{}},
		{ID: 8, Time: samples.Now.Add(-time.Minute), Cluster: "c2", Kind: "conflict", Code: "MESH-1203", Message: "two clusters claim 10.2.1.10/32", Resource: "ips", Name: "10.2.1.10/32", Evidence: map[string]string{"winner": "c2"}},
	}
}

// lossOfOne is the loss of service backends with one cluster.
func lossOfOne() *api.Loss {
	return &api.Loss{
		Only:   api.Losing{Services: 1, Names: []string{"shop/web"}, Backends: 2, Of: 2},
		Partly: api.Losing{Services: 2, Names: []string{"shop/a", "shop/b"}, Backends: 3, Of: 9},
	}
}
