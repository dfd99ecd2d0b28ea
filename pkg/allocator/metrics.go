package allocator

import "github.com/prometheus/client_golang/prometheus"

// Metrics are those of all allocators together. A nil one counts nothing.
type Metrics struct {
	hits, known, created, failed prometheus.Counter // allocations
	attempts                     prometheus.Counter
	jobs                         *prometheus.CounterVec
	twins                        prometheus.Counter
	refused                      map[string]prometheus.Counter // own and remote
	malformed                    *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them, unless reg is nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	allocations := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_agent_allocator_allocations_total",
		Help: "Allocations by outcome: used on this node already, known, new, or failed.",
	}, []string{"outcome"})
	m := &Metrics{
		hits: allocations.WithLabelValues("used"), known: allocations.WithLabelValues("known"),
		created: allocations.WithLabelValues("new"), failed: allocations.WithLabelValues("failed"),
		attempts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_agent_allocator_attempts_total",
			Help: "Attempts of allocations of keys that were not in use on this node.",
		}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_allocator_jobs_total",
			Help: "Work on mappings and node references besides allocations, by kind and outcome.",
		}, []string{"kind", "outcome"}),
		twins: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_agent_allocator_twins_total",
			Help: "Mappings that were seen to have the key of another mapping.",
		}),
		refused: map[string]prometheus.Counter{
			"own": prometheus.NewCounter(prometheus.CounterOpts{
				Name: "mesh_agent_allocator_refused_own_total",
				Help: "Mappings of the own cluster that were refused.",
			}),
			"remote": prometheus.NewCounter(prometheus.CounterOpts{
				Name: "mesh_agent_allocator_refused_remote_total",
				Help: "Mappings of remote clusters that were refused.",
			}),
		},
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_allocator_malformed_total",
			Help: "Mappings and node references that cannot be read, each value once as far as it is remembered.",
		}, []string{"kind"}),
	}
	for _, kind := range []string{"mapping", "reference"} {
		m.malformed.WithLabelValues(kind)
	}
	if reg != nil {
		reg.MustRegister(allocations, m.attempts, m.jobs, m.twins, m.refused["own"], m.refused["remote"], m.malformed)
	}
	return m
}

func (m *Metrics) hit() {
	if m != nil {
		m.hits.Inc()
	}
}

func (m *Metrics) allocated(isNew bool, err error) {
	switch {
	case m == nil:
	case err != nil:
		m.failed.Inc()
	case isNew:
		m.created.Inc()
	default:
		m.known.Inc()
	}
}

func (m *Metrics) attempt() {
	if m != nil {
		m.attempts.Inc()
	}
}

func (m *Metrics) job(kind jobKind, err error) {
	if m == nil {
		return
	}
	outcome := "success"
	if err != nil {
		outcome = "fail"
	}
	m.jobs.WithLabelValues(kind.String(), outcome).Inc()
}

func (m *Metrics) twin() {
	if m != nil {
		m.twins.Inc()
	}
}

// refuse counts a mapping that was refused, an "own" one or a "remote" one.
func (m *Metrics) refuse(whose string) {
	if m != nil {
		m.refused[whose].Inc()
	}
}

// Malformed counts an entry that cannot be read: a "mapping" or a "reference".
func (m *Metrics) Malformed(kind string) {
	if m != nil {
		m.malformed.WithLabelValues(kind).Inc()
	}
}
