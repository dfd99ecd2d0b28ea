package dnsserver

import (
	"net/netip"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/mesh-agent/mesh-agent/internal/base/quota"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
)

// Metrics count questions and refusals. It is a [prometheus.Collector].
type Metrics struct {
	prometheus.Collector // of all of them
	queries              *prometheus.CounterVec
	refused              *prometheus.CounterVec
	seconds              prometheus.Histogram

	ignored, malformed, unsupported, notPermitted prometheus.Counter // messages that are not answered as questions
}

// NewMetrics returns metrics whose counts are all zero.
func NewMetrics() *Metrics {
	all := prometheus.NewRegistry()
	of := promauto.With(all)
	m := &Metrics{
		Collector: all,
		queries: of.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_dns_queries_total", Help: "Answered queries, by transport, record type and response code.",
		}, []string{"transport", "type", "rcode"}),
		refused: of.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_agent_dns_refused_total", Help: "Queries and connections that exceeded a limit.",
		}, []string{"limit"}),
		seconds: of.NewHistogram(prometheus.HistogramOpts{
			Name: "mesh_agent_dns_answer_seconds", Help: "The time to answer a query.", Buckets: []float64{.00001, .0001, .001, .01, .1},
		}),
	}
	for _, limit := range []string{"connections", "queries"} {
		m.places(limit, transport.Limit{})
	}
	rejected := of.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_agent_dns_rejected_messages_total", Help: "Messages that are no questions to be answered, by reason.",
	}, []string{"reason"})
	m.ignored, m.malformed = rejected.WithLabelValues("ignored"), rejected.WithLabelValues("malformed")
	m.unsupported, m.notPermitted = rejected.WithLabelValues("unsupported"), rejected.WithLabelValues("client")
	return m
}

// places returns bounded places, whose refusals are counted.
func (m *Metrics) places(of string, l transport.Limit) places {
	return places{
		Quota: quota.New[netip.Addr](int64(l.All), int64(l.Peer)),
		all:   m.refused.WithLabelValues(of), own: m.refused.WithLabelValues(of + "_of_client"),
	}
}

// Totals returns how many questions were answered, and how many questions and connections were refused.
func (m *Metrics) Totals() (answered, refused uint64) {
	return total(m.queries), total(m.refused)
}

func total(c prometheus.Collector) (sum uint64) {
	reg := prometheus.NewRegistry()
	if reg.Register(c) != nil {
		return 0
	}
	families, _ := reg.Gather() // no error: the counter describes itself correctly
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sum += uint64(m.GetCounter().GetValue())
		}
	}
	return sum
}

func (m *Metrics) answered(network string, kind uint16, rcode int, took time.Duration) {
	m.queries.WithLabelValues(network, typeName(kind), dns.RcodeToString[rcode]).Inc()
	m.seconds.Observe(took.Seconds())
}

// typeName returns the name of a supported type, or "other". Clients may ask for any type, and a label must have few
// values.
func typeName(kind uint16) string {
	switch kind {
	case dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT, dns.TypePTR, dns.TypeSOA, dns.TypeNS:
		return dns.TypeToString[kind]
	}
	return "other"
}
