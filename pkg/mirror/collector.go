package mirror

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// collector shows how full our own etcd is, as metrics. Who does not lead knows its
// size as well, and copies nothing.
type collector struct {
	mirror                      *Mirror
	stopped, size, inUse, quota *prometheus.Desc
}

// NewCollector returns the metrics of the mirror, to be registered once.
func NewCollector(m *Mirror) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("mesh_agent_mirror_"+name, help, nil, nil)
	}
	return &collector{
		mirror:  m,
		stopped: desc("stopped", "1 while nothing but deletions is copied, because the own etcd is nearly full."),
		size:    desc("own_etcd_size_bytes", "Size of the own etcd's file, which it compares with its quota."),
		inUse:   desc("own_etcd_in_use_bytes", "What of it is in use, old revisions included."),
		quota:   desc("own_etcd_quota_bytes", "The quota of the own etcd: as it says, or else as --own-kvstore-quota does."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.stopped, c.size, c.inUse, c.quota} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	stopped := int64(0)
	if code, _ := c.mirror.Stopped(); code == codes.OwnEtcdFull {
		stopped = 1
	}
	gauge(c.stopped, stopped)
	s := c.mirror.Writer.Status().Server
	if s.AskedAt.IsZero() {
		return
	}
	gauge(c.size, s.DBSize)
	gauge(c.inUse, s.DBInUse)
	gauge(c.quota, c.mirror.Room.quotaOf(s))
}
