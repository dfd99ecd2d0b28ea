package syncstore

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Metrics show the progress of all Syncs together, by scope and cluster (spec wire.md §6.2). It is a
// [prometheus.Collector]; a nil one counts nothing. A Sync has series while it runs.
type Metrics struct {
	queue, errors, synced *prometheus.Desc

	mu    sync.Mutex
	syncs map[*Sync]struct{} // guarded by mu
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("mesh_agent_kvstore_"+name, help, append([]string{"scope", "source_cluster"}, labels...), nil)
	}
	return &Metrics{
		queue:  desc("sync_queue_size", "Keys that still have to be written to the kvstore or deleted from it."),
		errors: desc("sync_errors_total", "Writes of keys that the kvstore has refused, also for want of space."),
		synced: desc("initial_sync_completed", "Whether all keys had the wanted value in the kvstore at least once.", "action"),
		syncs:  make(map[*Sync]struct{}),
	}
}

func (m *Metrics) setRunning(s *Sync, runs bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.syncs, s); runs {
		m.syncs[s] = struct{}{}
	}
}

// Written describes a running [Sync] at one moment: its keys and its progress.
type Written struct {
	Prefix  string // of its keys
	Cluster string // cluster of the entries
	Status
}

// Written describes every Sync that runs, sorted by prefix.
func (m *Metrics) Written() []Written {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	all := make([]Written, 0, len(m.syncs))
	for s := range m.syncs {
		all = append(all, Written{s.p.Prefix, s.p.Cluster, s.Status()})
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b Written) int { return strings.Compare(a.Prefix, b.Prefix) })
	return all
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.queue
	ch <- m.errors
	ch <- m.synced
}

// Collect implements [prometheus.Collector]. The Syncs of one scope and cluster are combined.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	type labels struct{ scope, cluster string }
	sums := make(map[labels]Status)
	for _, w := range m.Written() {
		of := labels{wire.ScopeFromKey(w.Prefix), w.Cluster}
		sum, others := sums[of]
		sum.Pending += w.Pending
		sum.Errors += w.Errors
		sum.Synced = w.Synced && (sum.Synced || !others)
		sums[of] = sum
	}
	for of, sum := range sums {
		synced := 0.0
		if sum.Synced {
			synced = 1
		}
		ch <- prometheus.MustNewConstMetric(m.queue, prometheus.GaugeValue, float64(sum.Pending), of.scope, of.cluster)
		ch <- prometheus.MustNewConstMetric(m.errors, prometheus.CounterValue, float64(sum.Errors), of.scope, of.cluster)
		ch <- prometheus.MustNewConstMetric(m.synced, prometheus.GaugeValue, synced, of.scope, of.cluster, "write")
	}
}
