// Package agents runs complete agents of several clusters in one process: each publishes its own cluster, mirrors the
// others, reads all of them, and answers DNS questions about their services. Their kvstores are in memory, and there are
// no sockets, so they also run in a bubble of testing/synctest.
package agents

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/statedb"
	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/internal/own/operate"
	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The intervals of the agents: that of the probes of a real etcd, the TTL of leases and locks, and the interval of the
// readings of a directory.
const (
	leaseTTL      = kvstore.DefaultLockTTL
	probeInterval = 10 * time.Second
	poll          = 30 * time.Second
)

// Cluster is one cluster with its agent.
type Cluster struct {
	Own wire.ClusterInfo
	// Source is the description of the cluster, which the agent publishes.
	Source *local.Cluster
	// Store is the kvstore of the cluster.
	Store *memory.Store
	// Mesh is the view of all clusters.
	Mesh *mesh.Mesh

	operator *operate.Operator
	mirror   *mirror.Mirror
	writer   *kvstore.Durable
	dns      *dnsserver.Server
}

// World is a set of clusters that read each other.
type World struct {
	Clusters []*Cluster
	servers  memory.Servers
}

// New returns a world of clusters with these names, whose agents do not run yet. Its client files are in the directory.
func New(directory string, log *slog.Logger, names ...string) (*World, error) {
	w := &World{servers: make(memory.Servers)}
	for i, name := range names {
		store := memory.New()
		store.SetProbeInterval(probeInterval)
		store.ExpireAfter(leaseTTL)
		w.servers[endpoint(name)] = store
		own := wire.ClusterInfo{Name: name, ID: uint32(i + 1), MaxConnectedClusters: 255} //nolint:gosec // few
		w.Clusters = append(w.Clusters, &Cluster{Own: own, Store: store})
	}
	for _, c := range w.Clusters {
		if err := w.assemble(c, filepath.Join(directory, c.Own.Name), log.With("agent", c.Own.Name)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Run runs all agents until ctx ends.
func (w *World) Run(ctx context.Context) error {
	var parts []func(context.Context) error
	for _, c := range w.Clusters {
		parts = append(parts, c.writer.Run, c.operator.Run, c.mirror.Run, c.Mesh.Run)
	}
	return waiting.Together(ctx, parts...)
}

func endpoint(cluster string) string { return "http://" + cluster + ":2379" }

// assemble makes the parts of the agent of a cluster. Its mirror reads the kvstores of the other clusters, and its mesh
// the copies of them in the own kvstore.
func (w *World) assemble(c *Cluster, directory string, log *slog.Logger) (err error) {
	name := c.Own.Name
	originals, copies := filepath.Join(directory, "originals"), filepath.Join(directory, "copies")
	for _, other := range w.Clusters {
		if other == c {
			continue
		}
		if err := writeClientFile(originals, other.Own.Name, endpoint(other.Own.Name)); err != nil {
			return err
		}
		if err := writeClientFile(copies, other.Own.Name, endpoint(name)); err != nil {
			return err
		}
	}
	leases := kvstore.NewLeases()
	c.writer = kvstore.NewDurable(func(context.Context, int) (kvstore.Session, error) { return c.Store.ConnectWith(leases), nil },
		kvstore.DurableOptions{Leases: leases, Log: log})
	if c.Source, err = local.New(statedb.New()); err != nil {
		return err
	}
	layout, err := wire.NewLayout(c.Own.MaxConnectedClusters)
	if err != nil {
		return err
	}
	c.operator, err = operate.New(operate.Params{
		Own: c.Own, Writer: c.writer, Source: c.Source, GlobalNamespaces: true, NodesAndAddresses: true,
		Identities: identity.Cluster{Name: name, ID: c.Own.ID, Layout: layout}, LocksGCInterval: operate.DefaultLocksGCInterval, Log: log,
	})
	if err != nil {
		return err
	}
	m := mirror.DefaultParams()
	m.Directory, m.Local, m.Engine, m.Poll, m.Log, m.Writer = originals, c.Own, w.servers, poll, log, c.writer
	if c.mirror, err = mirror.New(m); err != nil {
		return err
	}
	c.Mesh, err = mesh.New(mesh.Config{
		Directory: copies, ClusterName: name, ClusterID: c.Own.ID, MaxConnectedClusters: c.Own.MaxConnectedClusters,
		Engine: w.servers, Poll: poll, Log: log,
		Own: &clustermesh.OwnKVStore{Load: func() (*clientfile.Config, error) { return clientfile.New(endpoint(name)) }},
	})
	if err != nil {
		return err
	}
	c.dns, err = dnsserver.New(dnsserver.Params{View: c.Mesh.View, Cluster: name, Log: log})
	return err
}

func writeClientFile(directory, cluster, endpoint string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, cluster), []byte("endpoints: ["+endpoint+"]\n"), 0o600)
}

// Originals describes the other clusters as the mirror reads them.
func (c *Cluster) Originals() []remotecluster.Status { return c.mirror.Clusters() }

// Resolve asks the DNS server of the cluster for the IPv4 addresses of a name, as a client on the same node does.
func (c *Cluster) Resolve(name string) (addresses []string, err error) {
	question, err := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA).Pack()
	if err != nil {
		return nil, err
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(c.dns.Reply(question, netip.MustParseAddr("127.0.0.1"), "udp")); err != nil {
		return nil, err
	}
	if reply.Rcode != dns.RcodeSuccess {
		return nil, fmt.Errorf("%s: %s", name, dns.RcodeToString[reply.Rcode])
	}
	for _, r := range reply.Answer {
		if a, is := r.(*dns.A); is {
			addresses = append(addresses, a.A.String())
		}
	}
	return addresses, nil
}
