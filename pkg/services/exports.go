package services

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// DefaultAffinityTimeout is that of an affinity by client address where none is
// said, as in Kubernetes.
const DefaultAffinityTimeout = 10800 * time.Second

// Export is what one cluster says of a service that it exports through the MCS API (wire.md §1.5),
// as far as clusters may disagree on it. It has no part in merging: backends come from services and
// slices. It is immutable. Cluster, Namespace and Name identify it.
type Export struct {
	Cluster         string
	Namespace, Name string
	Type            string        // wire.ServiceExportClusterSetIP or wire.ServiceExportHeadless
	Affinity        string        // of sessions: wire.SessionAffinityClientIP or wire.SessionAffinityNone
	Timeout         time.Duration // of an affinity by client address; otherwise 0
	Ports           []Port        // of the service, not of its backends; sorted, no duplicates
	Created         time.Time     // in seconds; of exports that disagree the oldest counts
}

// ExportFromWire converts a decoded export. Ports without a valid number are left
// out, and a protocol that is not said is TCP.
func ExportFromWire(w *wire.ServiceExport) *Export {
	e := &Export{
		Cluster: w.Cluster, Namespace: w.Namespace, Name: w.Name,
		Type: w.Type, Affinity: w.SessionAffinity, Created: w.ExportCreationTimestamp.UTC(),
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
		if p.Port > 0 && p.Port <= math.MaxUint16 {
			e.Ports = append(e.Ports, Port{Name: p.Name, Protocol: protocol(cmp.Or(p.Protocol, "TCP")), Port: uint16(p.Port)})
		}
	}
	e.Ports = slices.Clip(slices.Compact(sortPorts(e.Ports)))
	return e
}

// Key is "cluster/namespace/name".
func (e *Export) Key() string { return key(e.Cluster, e.Namespace, e.Name) }

// FullName is "namespace/name".
func (e *Export) FullName() string { return fullName(e.Namespace, e.Name) }

// Equal tells whether both say the same.
func (e *Export) Equal(o *Export) bool {
	return e.Key() == o.Key() && e.Type == o.Type && e.Affinity == o.Affinity && e.Timeout == o.Timeout &&
		e.Created.Equal(o.Created) && slices.Equal(e.Ports, o.Ports)
}

// SessionAffinity is the affinity in words, with its timeout: who says the same has the same.
func (e *Export) SessionAffinity() string {
	if e.Affinity != wire.SessionAffinityClientIP {
		return e.Affinity
	}
	return fmt.Sprintf("%s for %d s", e.Affinity, e.Timeout/time.Second)
}

// SortExports sorts what clusters say of one service by how much it counts: the
// oldest first (wire.md §1.5), and of equally old ones that of the first name.
func SortExports(of []*Export) {
	slices.SortFunc(of, func(a, b *Export) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Cluster, b.Cluster))
	})
}

// AffinitiesDiffer tells whether clusters export one service with different affinities of sessions.
func AffinitiesDiffer(of []*Export) bool {
	return slices.ContainsFunc(of, func(e *Export) bool { return e.Affinity != of[0].Affinity || e.Timeout != of[0].Timeout })
}
