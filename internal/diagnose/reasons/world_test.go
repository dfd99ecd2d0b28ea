package reasons

import (
	"fmt"
	"iter"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

var epoch = time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)

// world is a view over real tables; clusters and keys are as the test says.
type world struct {
	t *testing.T
	*clustermesh.Tables
	clusters map[string]remotecluster.Status
	found    map[string]store.Found // by cluster, resource and name
	own      string
}

// newWorld has the own cluster c1 and two others, all fresh.
func newWorld(t *testing.T) *world {
	t.Helper()
	tables, err := clustermesh.NewTables(statedb.New(), ipcache.New(ipcache.Rules{}))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, Tables: tables, found: make(map[string]store.Found), own: "c1"}
	w.clusters = map[string]remotecluster.Status{"c1": fresh("c1", 1), "c2": fresh("c2", 2), "c3": fresh("c3", 3)}
	return w
}

// fresh is a cluster of which everything is known.
func fresh(name string, id uint32) remotecluster.Status {
	c := remotecluster.Status{
		Name: name, ID: id, State: remotecluster.Ready, Code: codes.AllFollowed, Ready: true, Connected: true, ConfigFile: "/mesh/" + name,
		Capabilities: new(wire.Capabilities), Families: make(map[wire.Resource]remotecluster.FamilyStatus), Heartbeat: kvstore.HeartbeatStatus{Seen: epoch},
	}
	for _, r := range wire.Resources() {
		c.Families[r] = remotecluster.FamilyStatus{
			Exported: r != wire.EndpointSlices, Synced: true, Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: epoch},
		}
	}
	return c
}

// lose makes the entries of a cluster old.
func (w *world) lose(cluster string) {
	c := w.clusters[cluster]
	c.Connected, c.Ready, c.State, c.Code, c.Message = false, false, remotecluster.Degraded, codes.ConnectionLost, "not connected"
	for r, s := range c.Families {
		s.Freshness.State = remotecluster.FreshnessStale
		c.Families[r] = s
	}
	w.clusters[cluster] = c
}

// refuses lets entries of a cluster be refused.
func (w *world) refuses(cluster string, r wire.Resource, reason wire.Reason, n int) {
	src := w.clusters[cluster].Families[r]
	src.Rejected, src.Rejections = n, map[wire.Reason]int{reason: n}
	if reason == wire.ReasonBudget {
		src.Over = store.OverKeys
	}
	w.clusters[cluster].Families[r] = src
}

func (w *world) view() *Facts {
	return &Facts{
		Tables: w.Tables, Txn: w.DB.ReadTxn(), Clusters: w.clusters, Own: w.own,
		Find: func(cluster string, r wire.Resource, name string) (store.Found, bool) {
			f, known := w.found[cluster+" "+string(r)+" "+name]
			return f, known
		},
	}
}

// knows adds a key.
func (w *world) knows(cluster string, r wire.Resource, name, refused string) {
	f := store.Found{Key: r.Key(cluster, false, name), Revision: 7, Read: epoch, InForce: refused == ""}
	if refused != "" {
		f.Reason, f.Why = wire.ReasonMalformed, refused
	}
	w.found[cluster+" "+string(r)+" "+name] = f
}

// exports adds a service default/web.
func (w *world) exports(cluster string, change func(*services.Service)) {
	s := &services.Service{
		Cluster: cluster, ClusterID: w.clusters[cluster].ID, Namespace: "default", Name: "web", Shared: true, IncludeExternal: true,
		Source: wire.SourceClusterMesh, Backends: []services.Backend{{IP: netip.MustParseAddr("10.0.0." + cluster[1:])}},
	}
	if cluster == w.own {
		s.Source = wire.SourceKVStore
	}
	change(s)
	w.Services.Apply([]store.Change[services.Service]{{Name: "default/web", New: s}})
	w.knows(cluster, wire.Services, "default/web", "")
}

// loopback is a judge that bars 127.0.0.1.
type loopback struct{}

func (loopback) Enforces() bool { return true }

func (loopback) Breaches(addrs iter.Seq[netip.Addr], visit func(netip.Addr, uint8, fmt.Stringer)) {
	for a := range addrs {
		if a.IsLoopback() {
			visit(a, 1, time.Second)
		}
	}
}

func same(*services.Service) {}

func alone(s *services.Service)  { s.Shared, s.IncludeExternal = false, false }
func empty(s *services.Service)  { s.Backends = nil }
func hidden(s *services.Service) { s.Shared = false }

func affinity(a wire.Affinity) func(*services.Service) {
	return func(s *services.Service) { s.Affinity = a }
}

// claims adds a claim on an address.
func (w *world) claims(cluster, prefix string, kind ipcache.Kind, name string) {
	c := w.clusters[cluster]
	w.IPs.Apply([]ipcache.Op{{New: ipcache.NewEntry(ipcache.Spec{
		Prefix: netip.MustParsePrefix(prefix), Cluster: &ipcache.Claimant{Name: cluster, ID: c.ID}, Kind: kind, Source: wire.SourceClusterMesh, Name: name,
	})}})
}

// hasNode adds a node with an address, and its claim on it.
func (w *world) hasNode(cluster, name, ip string) {
	n := &nodes.Node{Cluster: cluster, ClusterID: w.clusters[cluster].ID, Name: name, Addresses: []nodes.Address{{Type: "InternalIP", IP: netip.MustParseAddr(ip)}}}
	w.Nodes.Apply([]store.Change[nodes.Node]{{Name: name, New: n}})
	w.knows(cluster, wire.Nodes, name, "")
	w.claims(cluster, ip+"/32", ipcache.KindNode, name)
}

func (w *world) hasIdentity(cluster string, id uint32) {
	w.Identities.Apply([]store.Change[identities.Identity]{{Name: "x", New: &identities.Identity{ID: id, Cluster: cluster, ClusterID: w.clusters[cluster].ID}}})
}
