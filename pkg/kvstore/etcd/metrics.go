package etcd

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Metrics are the metrics of the kvstore, for all clients together (spec wire.md §6.2).
type Metrics struct {
	operations   *prometheus.HistogramVec
	quorumErrors *prometheus.CounterVec
	leases       *prometheus.GaugeVec
	locks        prometheus.Gauge
}

// NewMetrics makes the metrics and registers them, unless reg is nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{
		operations: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mesh_agent_kvstore_operations_duration_seconds",
			Help:    "Time that operations on a kvstore took, without the time they were held back by limits.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"action", "kind", "outcome", "scope"}),
		quorumErrors: f.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_kvstore_quorum_errors_total",
			Help: "Linearizable reads of the watchdog that failed, by reason.",
		}, []string{"error"}),
		leases: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mesh_agent_kvstore_leases",
			Help: "Leases that are kept alive, of keys (session) or of locks (lock).",
		}, []string{"kind"}),
		locks: f.NewGauge(prometheus.GaugeOpts{
			Name: "mesh_agent_kvstore_locks",
			Help: "Locks held.",
		}),
	}
}

func (m *Metrics) observe(op, key string, took time.Duration, err error) {
	if m == nil {
		return
	}
	outcome := "success"
	if err != nil {
		outcome = "fail"
	}
	m.operations.WithLabelValues(op, kindOfOp(op), outcome, scopeOf(key)).Observe(took.Seconds())
}

// kindOfOp returns the kind of an operation on keys (spec wire.md §6.2).
func kindOfOp(op string) string {
	switch op {
	case "put", "update", "lock":
		return "set"
	case "delete", "delete prefix", "unlock":
		return "delete"
	default:
		return "read"
	}
}

func (m *Metrics) quorumError(err error) {
	if m == nil {
		return
	}
	reason := "other"
	switch {
	case errors.Is(err, kvstore.ErrServerChanged):
		reason = "server changed"
	case isTimeout(err):
		reason = "timeout"
	case isUnavailable(err):
		reason = "unavailable"
	}
	m.quorumErrors.WithLabelValues(reason).Inc()
}

// scopeOf returns the scope of a key, without names of clusters: a removed cluster
// must leave no series behind.
func scopeOf(key string) string {
	if strings.HasPrefix(key, wire.SyncedPrefix) {
		return wire.SyncedPrefix
	}
	return wire.ScopeFromKey(key)
}
