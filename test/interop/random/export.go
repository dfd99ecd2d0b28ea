package random

import (
	"math"
	"time"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// ServiceExport makes the i-th service export.
func (m *Maker) ServiceExport(i int) model.ServiceExport {
	e := model.ServiceExport{
		Cluster:   m.cluster.Name,
		Namespace: namespace(i), Name: name("svc-", i, maxLabel),
		Labels:                  m.labels(),
		Annotations:             m.annotations(),
		ExportCreationTimestamp: m.created(),
		Type:                    pick(m.r, "ClusterSetIP", "Headless"),
		SessionAffinity:         pick(m.r, "ClientIP", "None"),
		SessionAffinityConfig: maybe(m.r, model.AffinityConfig{ClientIP: maybe(m.r, model.ClientIP{
			TimeoutSeconds: maybe(m.r, pick(m.r, int32(0), 1, 10800, 86400, math.MaxInt32, math.MinInt32)),
		})}),
		IPFamilies:            pick(m.r, nil, []string{"IPv4"}, []string{"IPv6"}, []string{"IPv4", "IPv6"}, []string{"IPv6", "IPv4"}, []string{"IPv9", ""}),
		InternalTrafficPolicy: maybe(m.r, pick(m.r, "Cluster", "Local")),
		TrafficDistribution:   maybe(m.r, pick(m.r, "PreferClose", "PreferSameZone", "PreferSameNode")),
	}
	for range m.few(100) {
		e.Ports = append(e.Ports, model.ServicePort{
			Name:        pick(m.r, "", "http", name("p-", 7, maxLabel)),
			Protocol:    pick(m.r, "TCP", "UDP", "SCTP", ""),
			AppProtocol: maybe(m.r, pick(m.r, "", "kubernetes.io/ws", m.labelKey(7))),
			Port:        pick(m.r, int32(0), 1, 80, math.MaxUint16, math.MaxInt32, math.MinInt32),
		})
	}
	return e
}

// created makes a time, sometimes one of the first and last that can be written.
func (m *Maker) created() time.Time {
	return time.Unix(pick(m.r,
		-62135596799,                  // a second after the time that is none
		-1, 0, 1, 1<<31, 253402300799, // the end of the year 9999
		1_600_000_000+m.r.Int64N(300_000_000)), 0).UTC()
}
