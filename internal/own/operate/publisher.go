package operate

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/publish"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// publisher writes what the cluster says of itself, for one term.
type publisher struct {
	*Operator
	lock     *kvstore.Lock
	outbox   *syncstore.Outbox
	config   *syncstore.Sync // of our configuration, beside those of copied clusters
	services map[wire.Resource]*syncstore.Sync
	// nodes and addresses are nil unless they are published here.
	nodes, addresses *syncstore.Sync
	// identities are those of the description, where Cilium keeps them as objects of
	// Kubernetes. Agents allocate below the same prefix while there is no Cilium. So it is
	// shared, the identities of agents stay, and it has a canary only if nodes and addresses
	// are published here too. mappings reports the identities whose number an agent has used.
	identities *syncstore.Sync
	mappings   *mappings
	canaries   *syncstore.Canaries
}

// serviceResources are those that follow from the description's services.
func serviceResources() []wire.Resource {
	return []wire.Resource{wire.Services, wire.EndpointSlices, wire.ServiceExports}
}

func (o *Operator) newPublisher(lock *kvstore.Lock) *publisher {
	p := &publisher{Operator: o, lock: lock, services: make(map[wire.Resource]*syncstore.Sync)}
	holding := func() *kvstore.Lock { return lock }
	p.outbox = syncstore.NewOutbox(o.Writer, holding, o.Metrics, o.Log)
	p.config = p.newSync(wire.ClusterConfigPrefix+"/", true)
	p.config.Put(o.Own.Name, o.Config().Encode()) // writes wire.ClusterConfigKey of the own cluster
	p.config.Complete()
	p.canaries = syncstore.NewCanaries(syncstore.CanariesParams{Dir: wire.SyncedDir(o.Own.Name), Writer: o.Writer, Holding: holding, Log: o.Log})
	if o.Source == nil {
		return p
	}
	for _, r := range serviceResources() {
		s := p.newSync(r.Prefix(o.Own.Name, false), false)
		p.services[r] = s
		p.canaries.Add(r.StorePrefix(false), s)
	}
	// No Reassert: there may be too many identities to read them one by one. Their events show each change.
	p.mappings = newMappings(o.finds("mappings", codes.NumberGivenAway), o.Log)
	p.identities = syncstore.New(syncstore.Params{
		Prefix: wire.Identities.Prefix(o.Own.Name, false), Shared: true, Sole: true, Outbox: p.outbox, Cluster: o.Own.Name, Log: o.Log,
		CreateOnly: true, Contradicted: p.mappings.wake.Notify,
	})
	p.mappings.all = p.identities.Contradictions
	if o.NodesAndAddresses {
		p.nodes = p.newSync(wire.Nodes.Prefix(o.Own.Name, false), false)
		p.addresses = p.newSync(wire.IPs.Prefix(o.Own.Name, false), false)
		p.canaries.Add(wire.Nodes.StorePrefix(false), p.nodes)
		p.canaries.Add(wire.IPs.StorePrefix(false), p.addresses)
		p.canaries.Add(wire.Identities.StorePrefix(false), p.identities)
	}
	return p
}

func (p *publisher) newSync(prefix string, shared bool) *syncstore.Sync {
	return syncstore.New(syncstore.Params{
		Prefix: prefix, Shared: shared, Outbox: p.outbox, Cluster: p.Own.Name, Reassert: reassertInterval, Log: p.Log,
	})
}

func (p *publisher) run(ctx context.Context) error {
	runs := []func(context.Context) error{p.outbox.Run, p.awaitPublished}
	for _, s := range p.all() {
		runs = append(runs, s.Run)
	}
	if p.nodes != nil {
		runs = append(runs, p.membership)
	}
	if p.Source != nil {
		identities := publish.NewIdentities(p.Source, p.Own, publish.IdentitiesParams{
			Layout: p.Identities.Layout, DefaultGlobalNamespace: p.GlobalNamespaces, To: p.identities, Log: p.Log,
		})
		runs = append(runs, p.canaries.Run, p.follow, p.mappings.run, identities.Run)
	}
	return waiting.Together(ctx, runs...)
}

// follow publishes the services of the description, again with each change.
func (p *publisher) follow(ctx context.Context) error {
	to := publish.ServiceTargets{EndpointSlices: p.services[wire.EndpointSlices]}
	if services := p.services[wire.Services]; p.SlicesOnly {
		services.Complete() // this format has no entries; the canary tells the readers that wait for it
	} else {
		to.Services = services
	}
	if exports := p.services[wire.ServiceExports]; p.ServiceExports {
		to.ServiceExports = exports
	} else {
		exports.Complete() // there are none, which the canary says
	}
	return publish.NewServices(p.Source, p.Own, p.GlobalNamespaces, to).Run(ctx)
}

// awaitPublished notes when everything that is known was published.
func (p *publisher) awaitPublished(ctx context.Context) error {
	all := p.all()
	if p.nodes != nil {
		all = append(all, p.nodes, p.addresses)
	}
	for _, s := range all {
		if err := s.WaitClean(ctx); err != nil {
			return err
		}
	}
	p.Log.Info("Published", "took", p.Written().Round(time.Millisecond))
	return nil
}

// all are the syncs of the term that run from its begin.
func (p *publisher) all() []*syncstore.Sync {
	all := []*syncstore.Sync{p.config}
	if p.Source != nil {
		all = append(all, p.identities)
	}
	for _, s := range p.services {
		all = append(all, s)
	}
	return all
}
