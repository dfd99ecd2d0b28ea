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

// The times between two checks of the clusters.
const (
	policyInterval = 5 * time.Second        // the longest time; shorter in tests with a short StaleAfter
	policyPause    = 200 * time.Millisecond // the shortest time, also after changes: hundreds of clusters start at the same time
)

// policy applies the disconnect policy to the remote clusters. At the start, also after
// a restart, no cluster is in doubt: a cluster that was not synced since is not judged,
// and none of its backends is used.
type policy struct {
	apply func(cluster string, to disconnect.State)
	most  time.Duration // longest time between two checks
	// patience returns how long a doubt must last before it counts, at the present size of the own
	// cluster. Every cluster is probed in this time, also with long intervals between the probes.
	patience func() time.Duration

	work    sync.Mutex // held during a whole step
	machine *disconnect.Machine

	mu        sync.Mutex // never held for long
	forecasts map[string]disconnect.Forecast
}

// newPolicy returns the policy in the parameters; nil when they have none.
func newPolicy(p *Params) *policy {
	if p.Policy == nil {
		return nil
	}
	return &policy{
		apply: p.ApplyPolicy, machine: disconnect.New(*p.Policy, p.Timings.StaleAfter),
		most:     min(policyInterval, p.Timings.StaleAfter/2),
		patience: func() time.Duration { return p.Engine.Stretch(p.Timings.StaleAfter) },
	}
}

// run checks the clusters until ctx ends: after a change of their state, when a
// decision is due, and every few seconds.
func (p *policy) run(ctx context.Context, m *Remotes) error {
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
		case <-m.changed:
		case <-time.After(wait - pause):
		}
	}
	return ctx.Err()
}

// step checks the clusters once, and returns when the next decision is due. A decision
// is applied before it is shown.
func (p *policy) step(m *Remotes) (next time.Time) {
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
	forecasts := make(map[string]disconnect.Forecast, len(evidence))
	for name := range evidence {
		forecasts[name], _ = p.machine.Forecast(name)
	}
	if p.publish(forecasts) {
		m.Changes.Add()
	}
	return next
}

// publish stores the forecasts for readers, and reports whether a state or a hold has changed.
func (p *policy) publish(forecasts map[string]disconnect.Forecast) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, o := range forecasts {
		was := p.forecasts[name]
		changed = changed || o.State != was.State || !o.Held.Equal(was.Held)
	}
	p.forecasts = forecasts
	return changed
}

// forecast returns the forecast of a cluster; nil without a policy, or before the
// first check of the cluster.
func (p *policy) forecast(name string) *disconnect.Forecast {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if o, known := p.forecasts[name]; known {
		return &o
	}
	return nil
}

// forget removes the state of a cluster whose entries were withdrawn, and ends the policy's effect on it.
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
	delete(p.forecasts, name)
}

// evidenceOf returns the evidence in the status of a cluster. It uses the services, or else the endpoint
// slices, since the policy decides about their backends. A cluster that is being removed is no longer
// judged.
func evidenceOf(st *remotecluster.Status) disconnect.Evidence {
	src := st.Families[wire.Services]
	if !src.Exported {
		src = st.Families[wire.EndpointSlices]
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

// ApplyPolicy applies a state of the disconnect policy to the services of a cluster. It is for [Params].
func (v *Ingest) ApplyPolicy(cluster string, to disconnect.State) {
	v.Services.SetUse(cluster, map[disconnect.State]services.BackendUse{
		disconnect.Keep: services.Full, disconnect.Demote: services.Demoted, disconnect.Withdraw: services.Withdrawn,
	}[to])
}
