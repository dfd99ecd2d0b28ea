// Package agents runs complete agents of several clusters in one process: each publishes its own cluster, mirrors the
// others, reads all of them, answers DNS questions about their services, and writes EndpointSlices of their backends. The
// kvstores and the Kubernetes APIs are in memory, and there are no sockets, so they also run in a bubble of testing/synctest.
package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/statedb"
	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/internal/own/operate"
	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The intervals of the agents: that of the probes of a real etcd, the TTL of leases, which is shorter than the default, so
// that leases end in short simulations, the interval of the readings of a directory, and those of the nodes that look at the
// identities in use, and of the operator that collects the others.
const (
	leaseTTL      = 5 * time.Minute
	probeInterval = 10 * time.Second
	poll          = 30 * time.Second
	periodicSync  = time.Minute
	collected     = 2 * time.Minute
)

// LogKey is the key of the name of the cluster in all messages of its programs.
const LogKey = "agent"

// Cluster is one cluster with its agent.
type Cluster struct {
	Own wire.ClusterInfo
	// Source is the description of the cluster, which the agent publishes.
	Source *local.Cluster
	// API is the Kubernetes API of the cluster, as the agent uses it.
	API *API
	// Store is the kvstore of the cluster.
	Store *memory.Store
	// Members are the nodes that register themselves. They do not run with the agent.
	Members []*Member
	// Mesh is the view of all clusters. A new agent has another one.
	Mesh *mesh.Mesh
	// Direct, unless nil, is the view of a program that reads the kvstores of the other clusters without a mirror.
	Direct *mesh.Mesh

	operator *operate.Operator
	mirror   *mirror.Mirror
	writer   *kvstore.Durable
	dns      *dnsserver.Server
	slices   *endpointslices.Controller
	informed *local.Cluster // the agent's copy of Source
	// The HTTP API and the xDS server.
	http, xds          servers
	serveAPI, serveADS func(context.Context) error
}

// World is a set of clusters that read each other.
type World struct {
	Clusters []*Cluster
	Params
	servers memory.Servers // of all routes
	routes  map[[2]*Cluster]*memory.Store
}

// Params are the parameters of a world. Log is required.
type Params struct {
	Directory string         // of the client files and of the states
	Direct    bool           // each cluster has a program that reads the other kvstores without a mirror
	Members   int            // of each second cluster, which has no Cilium: nodes that register themselves
	Budget    *budget.Budget // of each cluster, in each program; nil: the defaults
	Log       *slog.Logger
}

// New returns a world of clusters with these names, whose agents do not run yet.
func New(p Params, names ...string) (*World, error) {
	w := &World{Params: p, servers: make(memory.Servers), routes: make(map[[2]*Cluster]*memory.Store)}
	for i, name := range names {
		store := memory.New()
		store.SetProbeInterval(probeInterval)
		store.ExpireAfter(leaseTTL, kvstore.DefaultLockTTL)
		own := wire.ClusterInfo{Name: name, ID: uint32(i + 1), MaxConnectedClusters: 255} //nolint:gosec // few
		source, err := local.New(statedb.New())
		if err != nil {
			return nil, err
		}
		c := &Cluster{Own: own, Store: store, Source: source, API: &API{source: source}}
		if i%2 == 1 {
			c.Members = w.newMembers(c, p.Members)
		}
		w.Clusters = append(w.Clusters, c)
	}
	for _, from := range w.Clusters {
		for _, to := range w.Clusters {
			route := to.Store.Route()
			w.routes[[2]*Cluster{from, to}], w.servers[endpoint(from, to)] = route, route
		}
	}
	for _, c := range w.Clusters {
		if err := errors.Join(w.writeClientFiles(c), w.makeStates(c), w.Renew(c)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Run runs all agents until ctx ends.
func (w *World) Run(ctx context.Context) error {
	var all []func(context.Context) error
	for _, c := range w.Clusters {
		all = append(all, c.Run)
	}
	return waiting.Together(ctx, all...)
}

// Run runs the agent of the cluster until ctx ends. Each agent runs once ([World.Renew]).
func (c *Cluster) Run(ctx context.Context) error {
	parts := []func(context.Context) error{c.writer.Run, c.operator.Run, c.mirror.Run, c.Mesh.Run, c.API.inform(c.informed), c.slices.Run, c.serveAPI, c.serveADS}
	if c.Direct != nil {
		parts = append(parts, c.Direct.Run)
	}
	return waiting.Together(ctx, parts...)
}

// Route is the part of the network between the programs of a cluster and the kvstore of a cluster, perhaps its own.
func (w *World) Route(from, to *Cluster) *memory.Store { return w.routes[[2]*Cluster{from, to}] }

func endpoint(from, to *Cluster) string {
	return "http://" + to.Own.Name + "." + from.Own.Name + ":2379"
}

// Originals returns the client file of a cluster with which other clusters read it, and Copies that for its copy.
func (w *World) Originals(reader, read *Cluster) string { return w.file(reader, "originals", read) }

// Copies is the same for the copy in the kvstore of the reader.
func (w *World) Copies(reader, read *Cluster) string { return w.file(reader, "copies", read) }

// States returns the directories where the agent of a cluster keeps its states over restarts: that of its view, and that of
// its mirror.
func (w *World) States(c *Cluster) []string {
	return []string{filepath.Join(w.Directory, c.Own.Name, "state"), filepath.Join(w.Directory, c.Own.Name, "mirror-state")}
}

func (w *World) makeStates(c *Cluster) error {
	for _, dir := range w.States(c) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) file(reader *Cluster, directory string, read *Cluster) string {
	return filepath.Join(w.Directory, reader.Own.Name, directory, read.Own.Name)
}

// writeClientFiles writes the client files of the agent of a cluster.
func (w *World) writeClientFiles(c *Cluster) error {
	for _, other := range w.Clusters {
		if other == c {
			continue
		}
		if err := errors.Join(
			WriteClientFile(w.Originals(c, other), c, other), WriteClientFile(w.Copies(c, other), c, c),
		); err != nil {
			return err
		}
	}
	return nil
}

// Renew gives a cluster another agent, which does not run yet and knows nothing. Its mirror reads the kvstores of the
// other clusters, and its mesh the copies of them in the own kvstore.
func (w *World) Renew(c *Cluster) (err error) {
	name, log := c.Own.Name, w.Log.With(LogKey, c.Own.Name)
	originals, copies := filepath.Join(w.Directory, name, "originals"), filepath.Join(w.Directory, name, "copies")
	leases := kvstore.NewLeases()
	c.writer = kvstore.NewDurable(func(context.Context, int) (kvstore.Session, error) { return w.Route(c, c).ConnectWith(leases), nil },
		kvstore.DurableOptions{Leases: leases, Log: log})
	layout, err := wire.NewLayout(c.Own.MaxConnectedClusters)
	if err != nil {
		return err
	}
	c.operator, err = operate.New(operate.Params{
		Own: c.Own, Writer: c.writer, Source: c.Source, GlobalNamespaces: true, NodesAndAddresses: len(c.Members) == 0,
		Identities: identity.Owner{Name: name, ID: c.Own.ID, Layout: layout}, GCInterval: collected,
		LocksGCInterval: operate.DefaultLocksGCInterval, Log: log,
	})
	if err != nil {
		return err
	}
	states, m, budgets := w.States(c), mirror.DefaultParams(), budget.Defaults()
	m.Directory, m.Local, m.Engine, m.Poll, m.Log, m.Writer, m.StateDir = originals, c.Own, w.servers, poll, log, c.writer, states[1]
	if w.Budget != nil {
		m.Budgets.Budget, budgets.Budget = *w.Budget, *w.Budget
	}
	if c.mirror, err = mirror.New(m); err != nil {
		return err
	}
	c.Mesh, err = mesh.New(mesh.Config{
		Directory: copies, ClusterName: name, ClusterID: c.Own.ID, MaxConnectedClusters: c.Own.MaxConnectedClusters,
		Engine: w.servers, Poll: poll, Log: log, StateDir: states[0], Budgets: &budgets,
		Own: &clustermesh.OwnKVStore{Load: func() (*clientfile.Config, error) { return clientfile.New(endpoint(c, c)) }},
	})
	if err != nil {
		return err
	}
	if w.Direct {
		c.Direct, err = mesh.New(mesh.Config{Directory: originals, MaxConnectedClusters: c.Own.MaxConnectedClusters, Engine: w.servers, Poll: poll, Log: log, Budgets: &budgets})
		if err != nil {
			return err
		}
	}
	if c.serveAPI, err = c.serveHTTP(c.Mesh.View); err != nil {
		return err
	}
	if c.serveADS, err = c.serveXDS(c.Mesh.View, log); err != nil {
		return err
	}
	if c.informed, err = local.New(c.Mesh.Tables.DB); err != nil {
		return err
	}
	c.slices = endpointslices.New(endpointslices.Params{
		DB: c.Mesh.Tables.DB, Cluster: c.informed, Services: c.Mesh.Tables.Services, Ready: reconcile.ReadyOf(c.Mesh.Remotes),
		Remotes: reconcile.RemotesOf(c.Mesh.Remotes, reconcile.ServicesRead), Writer: c.API, OwnNetworks: c.Mesh.Tables.IPs, Log: log,
	})
	c.dns, err = dnsserver.New(dnsserver.Params{View: c.Mesh.View, Cluster: name, Log: log})
	return err
}

// WriteClientFile writes a client file of the agent of a cluster, which leads to the kvstore of a cluster.
func WriteClientFile(path string, from, to *Cluster) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("endpoints: ["+endpoint(from, to)+"]\n"), 0o600)
}

// Mirrored describes the other clusters as the mirror reads them.
func (c *Cluster) Mirrored() []remotecluster.Status { return c.mirror.Clusters() }

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
