package findings

import "github.com/prometheus/client_golang/prometheus"

// collector counts the conflicts when it is asked.
type collector struct {
	findings  *Findings
	conflicts *prometheus.Desc
}

// NewCollector returns the metrics of the findings, to be registered once.
func NewCollector(f *Findings) prometheus.Collector {
	return &collector{f, prometheus.NewDesc("mesh_agent_conflicts", "What clusters disagree on at present.", []string{"kind"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.conflicts }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counts := make(map[Kind]int)
	for conflict := range c.findings.Conflicts().All(c.findings.db.ReadTxn()) {
		counts[conflict.Kind] += conflict.count()
	}
	for _, kind := range Kinds() { // those without any as well
		ch <- prometheus.MustNewConstMetric(c.conflicts, prometheus.GaugeValue, float64(counts[kind]), string(kind))
	}
}
