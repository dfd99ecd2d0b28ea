package allocator

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the metrics of all allocators together. A nil *Metrics counts nothing.
type Metrics struct {
	hits, known, created, failed                    prometheus.Counter // allocations
	attempts, duplicates, refusedOwn, refusedRemote prometheus.Counter
	jobs, malformed                                 *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them, unless reg is nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: "mesh_agent_allocator_" + name, Help: help}, labels)
	}
	allocations := counter("allocations_total", "Allocations by outcome: used on this node already, known, new, or failed.", "outcome")
	m := &Metrics{
		hits: allocations.WithLabelValues("used"), known: allocations.WithLabelValues("known"),
		created: allocations.WithLabelValues("new"), failed: allocations.WithLabelValues("failed"),
		attempts:      counter("attempts_total", "Attempts of allocations of keys that were not in use on this node.").WithLabelValues(),
		duplicates:    counter("twins_total", "Mappings that were seen to have the key of another mapping.").WithLabelValues(),
		refusedOwn:    counter("refused_own_total", "Mappings of the own cluster that were refused.").WithLabelValues(),
		refusedRemote: counter("refused_remote_total", "Mappings of remote clusters that were refused.").WithLabelValues(),
		jobs:          counter("jobs_total", "Work on mappings and node references besides allocations, by kind and outcome.", "kind", "outcome"),
		malformed:     counter("malformed_total", "Mappings and node references that cannot be read, each value once as far as it is remembered.", "kind"),
	}
	for _, kind := range []string{"mapping", "reference"} {
		m.malformed.WithLabelValues(kind)
	}
	return m
}

func (m *Metrics) allocated(isNew bool, err error) {
	switch {
	case err != nil:
		m.failed.Inc()
	case isNew:
		m.created.Inc()
	default:
		m.known.Inc()
	}
}

func (m *Metrics) job(kind jobKind, err error) {
	outcome := "success"
	if err != nil {
		outcome = "fail"
	}
	m.jobs.WithLabelValues(kind.String(), outcome).Inc()
}

// Malformed counts an entry that cannot be read: a "mapping" or a "reference".
func (m *Metrics) Malformed(kind string) {
	if m != nil {
		m.malformed.WithLabelValues(kind).Inc()
	}
}
