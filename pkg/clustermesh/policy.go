package clustermesh

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// How often the policy looks at the clusters.
const (
	policyInterval = 5 * time.Second        // at least, unless what tests take for half a minute is less
	policyPause    = 200 * time.Millisecond // after a look, whatever has changed: hundreds of clusters begin at once
)

// policy applies the disconnect policy to the remote clusters. It begins with
// nothing against anybody, also after a restart: what was not synced since is not
// judged, and of that nothing is used.
type policy struct {
	apply func(cluster string, to disconnect.State)
	most  time.Duration // between two looks
	// patience is how long a doubt has to last at the present size of the own cluster:
	// within it every cluster is probed, also where probes are far apart.
	patience func() time.Duration

	work    sync.Mutex // held for a whole step
	machine *disconnect.Machine

	mu       sync.Mutex // never held for long
	outlooks map[string]disconnect.Outlook
}

// newPolicy returns the policy of the parameters; nil when they have none.
func newPolicy(p *Params) *policy {
	if p.Policy == nil {
		return nil
	}
	return &policy{
		apply: p.ApplyPolicy, machine: disconnect.New(*p.Policy, p.Timings.StaleAfter),
		most:     min(policyInterval, p.Timings.StaleAfter/2),
		patience: func() time.Duration { return p.KVStore.Stretch(p.Timings.StaleAfter) },
	}
}

// run looks at the clusters until ctx ends: when something has changed about
// them, when something is due, and every few seconds.
func (p *policy) run(ctx context.Context, m *Mesh) error {
	for ctx.Err() == nil {
		next := p.step(m)
		wait := p.most
		if !next.IsZero() {
			wait = min(wait, max(0, time.Until(next)))
		}
		pause := min(policyPause, wait)
		if err := waiting.Sleep(ctx, pause); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-m.stirred:
		case <-time.After(wait - pause):
		}
	}
	return ctx.Err()
}

// step looks once, and returns when something is due. What is said of a cluster
// is in force when it is said.
func (p *policy) step(m *Mesh) (next time.Time) {
	p.work.Lock()
	defer p.work.Unlock()
	evidence := make(map[string]disconnect.Evidence)
	for _, st := range m.Clusters() {
		evidence[st.Name] = evidenceOf(&st)
	}
	p.machine.SetPatience(p.patience())
	transitions, next := p.machine.Step(time.Now(), evidence)
	for _, tr := range transitions {
		p.apply(tr.Cluster, tr.To)
	}
	outlooks := make(map[string]disconnect.Outlook, len(evidence))
	for name := range evidence {
		outlooks[name], _ = p.machine.Outlook(name)
	}
	if p.publish(outlooks) {
		m.revision.Add(1)
	}
	return next
}

// publish shows the outlooks, and reports whether a state is another one than before.
func (p *policy) publish(outlooks map[string]disconnect.Outlook) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, o := range outlooks {
		was := p.outlooks[name]
		changed = changed || o.State != was.State || !o.Held.Equal(was.Held)
	}
	p.outlooks = outlooks
	return changed
}

// outlook is what is said of a cluster; nil without a policy, or before the
// first look at the cluster.
func (p *policy) outlook(name string) *disconnect.Outlook {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if o, known := p.outlooks[name]; known {
		return &o
	}
	return nil
}

// forget ends what is held against a cluster whose entries are withdrawn.
func (p *policy) forget(name string) {
	if p == nil {
		return
	}
	p.work.Lock()
	defer p.work.Unlock()
	p.machine.Forget(name)
	p.apply(name, disconnect.Keep)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.outlooks, name)
}

// evidenceOf is what a controller knows of its cluster. The services speak for all of it: their
// backends are what is decided about. One that is being removed is not judged any more.
func evidenceOf(st *remotecluster.Status) disconnect.Evidence {
	src := st.Sources[wire.Services]
	if !src.Exported {
		src = st.Sources[wire.EndpointSlices]
	}
	e := disconnect.Evidence{
		Synced: src.Synced && st.State != remotecluster.Removing,
		Fresh:  src.Freshness.State == remotecluster.FreshnessSynced,
		AsOf:   src.Freshness.AsOf, Connected: st.ConnectedSince, Heartbeat: st.Heartbeat.Seen, HeartbeatRevision: st.Heartbeat.Revision,
	}
	switch {
	case e.Fresh:
	case st.Connected:
		e.Error = "its etcd answers, but nothing confirms them"
	case st.LastFailure.After(st.LastSuccess):
		e.Error = st.LastError
	default:
		e.Error = cmp.Or(st.LastLoss, "not connected")
	}
	return e
}

// ApplyPolicy has the services follow the disconnect policy, for [Params].
func (v *View) ApplyPolicy(cluster string, to disconnect.State) {
	v.Services.SetUse(cluster, map[disconnect.State]services.BackendUse{
		disconnect.Keep: services.Full, disconnect.Demote: services.Demoted, disconnect.Withdraw: services.Withdrawn,
	}[to])
}
