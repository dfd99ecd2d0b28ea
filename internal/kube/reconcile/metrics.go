package reconcile

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those of a controller: what it has asked of the API server, and how much there is.
type Metrics struct {
	prometheus.Collector     // of all of them
	written, deleted, failed prometheus.Counter
	gauges                   promauto.Factory
}

// NewMetrics returns metrics that are not registered yet. Their names begin with name; the help texts begin with what, a
// plural noun.
func NewMetrics(name, what string) Metrics {
	all := prometheus.NewRegistry()
	made := promauto.With(all)
	counter := func(end, help string) prometheus.Counter {
		return made.NewCounter(prometheus.CounterOpts{Name: name + end, Help: help})
	}
	return Metrics{
		Collector: all, gauges: made,
		written: counter("_written_total", what+" that were applied."),
		deleted: counter("_deleted_total", what+" that were deleted."),
		failed:  counter("_failed_total", "Requests about "+what+" that failed."),
	}
}

// Gauge adds one.
func (m *Metrics) Gauge(name, help string) prometheus.Gauge {
	return m.gauges.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// Applied counts a request to apply an object. A request that ends with ctx does not count as failed.
func (m *Metrics) Applied(ctx context.Context, err error) { m.count(ctx, m.written, err) }

// Deleted counts a request to delete one.
func (m *Metrics) Deleted(ctx context.Context, err error) { m.count(ctx, m.deleted, err) }

func (m *Metrics) count(ctx context.Context, done prometheus.Counter, err error) {
	switch {
	case err == nil:
		done.Inc()
	case ctx.Err() == nil:
		m.failed.Inc()
	}
}
