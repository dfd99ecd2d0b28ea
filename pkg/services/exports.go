package services

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// DefaultAffinityTimeout is the timeout of an affinity by client address if the export has none, as in Kubernetes.
const DefaultAffinityTimeout = 10800 * time.Second

// Export is the data of one cluster about a service that it exports through the MCS API (wire.md §1.5), as far as
// clusters may disagree on it. It is not used in merging: backends come from services and slices. It is immutable, with
// its maps. Cluster, Namespace and Name identify it.
type Export struct {
	Cluster         string
	Namespace, Name string
	Type            string        // wire.ServiceExportClusterSetIP or wire.ServiceExportHeadless
	Affinity        string        // of sessions: wire.SessionAffinityClientIP or wire.SessionAffinityNone
	Timeout         time.Duration // of an affinity by client address; otherwise 0
	Ports           []Port        // of the service, not of its backends; sorted, no duplicates
	Created         time.Time     // in seconds; if exports disagree, the oldest counts
	Details         ExportDetails
}

// ExportDetails is the data of an export that only importers of the service read (mcs.md B). Only its size was checked:
// a remote may write values that no object of Kubernetes can have.
type ExportDetails struct {
	AppProtocols        map[Port]string   // of ports that have one
	Families            []string          // IPv4, IPv6, in the order of the cluster; no duplicates; empty when absent
	InternalTraffic     string            // wire.InternalTrafficCluster or Local; empty when absent
	TrafficDistribution string            // wire.PreferClose and others; empty when absent
	Labels, Annotations map[string]string // of the export itself, not of its objects
}

// equal reports whether both have the same contents.
func (d *ExportDetails) equal(o *ExportDetails) bool {
	return d.InternalTraffic == o.InternalTraffic && d.TrafficDistribution == o.TrafficDistribution &&
		slices.Equal(d.Families, o.Families) && maps.Equal(d.AppProtocols, o.AppProtocols) &&
		maps.Equal(d.Labels, o.Labels) && maps.Equal(d.Annotations, o.Annotations)
}

// detailsFromWire returns the details of a decoded export without those of its ports.
func detailsFromWire(w *wire.ServiceExport) ExportDetails {
	d := ExportDetails{
		InternalTraffic: orEmpty(w.InternalTrafficPolicy), TrafficDistribution: orEmpty(w.TrafficDistribution), Labels: w.Labels, Annotations: w.Annotations,
	}
	for _, family := range w.IPFamilies {
		if (family == IPv4 || family == IPv6) && !slices.Contains(d.Families, family) {
			d.Families = append(d.Families, family)
		}
	}
	return d
}

// The address families that an export may contain.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// ExportFromWire converts a decoded export. Ports without a valid number are left out, and an absent protocol is TCP.
func ExportFromWire(w *wire.ServiceExport) *Export {
	e := &Export{
		Cluster: w.Cluster, Namespace: w.Namespace, Name: w.Name,
		Type: w.Type, Affinity: w.SessionAffinity, Created: w.ExportCreationTimestamp.UTC(), Details: detailsFromWire(w),
	}
	if e.Affinity == wire.SessionAffinityClientIP {
		e.Timeout = DefaultAffinityTimeout
		if c := w.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			e.Timeout = time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second
		}
	}
	if len(w.Ports) > 0 {
		e.Ports = make([]Port, 0, len(w.Ports))
	}
	for _, p := range w.Ports {
		if p.Port <= 0 || p.Port > math.MaxUint16 {
			continue
		}
		port := Port{Name: p.Name, Protocol: protocol(cmp.Or(p.Protocol, "TCP")), Port: uint16(p.Port)}
		e.Ports = append(e.Ports, port)
		if p.AppProtocol != nil && *p.AppProtocol != "" {
			if e.Details.AppProtocols == nil {
				e.Details.AppProtocols = make(map[Port]string, 1)
			}
			e.Details.AppProtocols[port] = *p.AppProtocol
		}
	}
	e.Ports = slices.Clip(slices.Compact(sortPorts(e.Ports)))
	return e
}

// String returns a description such as "default/web of east, ClusterSetIP".
func (e *Export) String() string {
	return fullName(e.Namespace, e.Name) + " of " + e.Cluster + ", " + e.Type
}

// Key is "cluster/namespace/name".
func (e *Export) Key() string { return key(e.Cluster, e.Namespace, e.Name) }

// FullName is "namespace/name".
func (e *Export) FullName() string { return fullName(e.Namespace, e.Name) }

// Equal reports whether both have the same contents.
func (e *Export) Equal(o *Export) bool {
	return e.Key() == o.Key() && e.Type == o.Type && e.Affinity == o.Affinity && e.Timeout == o.Timeout &&
		e.Created.Equal(o.Created) && slices.Equal(e.Ports, o.Ports) && e.Details.equal(&o.Details)
}

// SessionAffinity returns the affinity as text, with its timeout: equal texts mean equal affinities.
func (e *Export) SessionAffinity() string {
	if e.Affinity != wire.SessionAffinityClientIP {
		return e.Affinity
	}
	return fmt.Sprintf("%s for %d s", e.Affinity, e.Timeout/time.Second)
}

// SortExports sorts the exports of one service by precedence: the oldest first (wire.md §1.5), and equally old ones by
// the name of the cluster.
func SortExports(of []*Export) {
	slices.SortFunc(of, func(a, b *Export) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Cluster, b.Cluster))
	})
}

// AffinitiesDiffer reports whether clusters export one service with different session affinities.
func AffinitiesDiffer(of []*Export) bool {
	return slices.ContainsFunc(of, func(e *Export) bool { return e.Affinity != of[0].Affinity || e.Timeout != of[0].Timeout })
}
