package view

import "github.com/prometheus/client_golang/prometheus"

// collector exports the memory of old versions as metrics.
type collector struct {
	feed                *feed
	old, dropped, ended *prometheus.Desc
}

// NewCollector returns the metrics of a view, to be registered once.
func NewCollector(v *View) prometheus.Collector {
	return &collector{
		v.feed,
		prometheus.NewDesc("mesh_agent_changes_old_bytes", "Memory of the old versions of objects that the latest changes keep, in bytes, about.", nil, nil),
		prometheus.NewDesc("mesh_agent_changes_dropped_total", "Changes that are not kept any more because the old versions of objects took too much memory.", nil, nil),
		prometheus.NewDesc("mesh_agent_slow_readers_ended_total", "Watches and answers that were ended because slow readers kept too many old versions of objects.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{c.old, c.dropped, c.ended} {
		ch <- one
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.feed.mu.Lock()
	old, dropped, ended := c.feed.old.sum, c.feed.old.dropped, c.feed.kept.ended
	c.feed.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(c.old, prometheus.GaugeValue, float64(old))
	ch <- prometheus.MustNewConstMetric(c.dropped, prometheus.CounterValue, float64(dropped))
	ch <- prometheus.MustNewConstMetric(c.ended, prometheus.CounterValue, float64(ended))
}
