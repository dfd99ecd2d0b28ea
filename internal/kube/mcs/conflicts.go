package mcs

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// The reasons of the condition Conflict (mcs.md B).
const (
	PortConflict                  = "PortConflict"
	IPFamilyConflict              = "IPFamilyConflict"
	TypeConflict                  = "TypeConflict"
	SessionAffinityConflict       = "SessionAffinityConflict"
	SessionAffinityConfigConflict = "SessionAffinityConfigConflict"
	AnnotationsConflict           = "AnnotationsConflict"
	LabelsConflict                = "LabelsConflict"
	InternalTrafficPolicyConflict = "InternalTrafficPolicyConflict"
	TrafficDistributionConflict   = "TrafficDistributionConflict"
)

// Conflict is a field on which exports disagree.
type Conflict struct {
	Reason string
	Field  string
	Winner string // the cluster whose export counts
	Why    string // it does, and not that of the first cluster that disagrees
	// Dissenters are how many clusters disagree with the winner, of all exporters.
	Dissenters, Total int
}

// String is the text of a condition: the field, the winner and the reason, and how many clusters differ. Only the
// winner is named, so the text is bounded.
func (c Conflict) String() string {
	counts := "counts"
	if c.Reason == PortConflict {
		counts = "comes first in the union" // ports of the others are there where they fit
	}
	return fmt.Sprintf("%s: what cluster %s exports %s, because %s; %d of %d clusters differ", c.Field, c.Winner, counts, c.Why, c.Dissenters, c.Total)
}

// field is one that all exports should have in common.
type field struct {
	reason, name string
	same         func(a, b *services.Export) bool
}

// fields are those of which the first export counts as a whole, in the order of their reasons, the
// families of addresses apart, which are intersected.
func fields() []field {
	return []field{
		{PortConflict, "ports", samePorts},
		{TypeConflict, "type", func(a, b *services.Export) bool { return a.Type == b.Type }},
		{SessionAffinityConflict, "sessionAffinity", func(a, b *services.Export) bool { return a.Affinity == b.Affinity }},
		{SessionAffinityConfigConflict, "sessionAffinityConfig", func(a, b *services.Export) bool { return a.Affinity != b.Affinity || a.Timeout == b.Timeout }},
		{AnnotationsConflict, "exportedAnnotations", func(a, b *services.Export) bool { return maps.Equal(a.Details.Annotations, b.Details.Annotations) }},
		{LabelsConflict, "exportedLabels", func(a, b *services.Export) bool { return maps.Equal(a.Details.Labels, b.Details.Labels) }},
		{InternalTrafficPolicyConflict, "internalTrafficPolicy", func(a, b *services.Export) bool { return internalTraffic(a) == internalTraffic(b) }},
		{TrafficDistributionConflict, "trafficDistribution", func(a, b *services.Export) bool {
			return a.Details.TrafficDistribution == b.Details.TrafficDistribution
		}},
	}
}

// internalTraffic is the policy in force: nothing said means all backends of the cluster.
func internalTraffic(e *services.Export) string {
	return cmp.Or(e.Details.InternalTraffic, wire.InternalTrafficCluster)
}

// conflicts are all fields on which the exports disagree. They are sorted.
func conflicts(exports []*services.Export, by Precedence) []Conflict {
	var out []Conflict
	add := func(reason, name string, winner *services.Export, dissenters []*services.Export) {
		if len(dissenters) == 0 {
			return
		}
		out = append(out, Conflict{
			Reason: reason, Field: name, Winner: winner.Cluster, Why: by.why(winner, dissenters[0]),
			Dissenters: len(dissenters), Total: len(exports),
		})
	}
	for _, f := range fields() {
		var dissenters []*services.Export
		for _, e := range exports[1:] {
			if !f.same(exports[0], e) {
				dissenters = append(dissenters, e)
			}
		}
		add(f.reason, f.name, exports[0], dissenters)
		if f.reason == PortConflict { // which the families follow
			agreed := commonFamilies(exports, by)
			add(IPFamilyConflict, "ipFamilies", agreed.decided, agreed.dissenters)
		}
	}
	return out
}

// reasons are those of all conflicts, with commas between them, and message has the text of each.
func reasons(all []Conflict) (reason, message string) {
	var names, texts []string
	for _, c := range all {
		names = append(names, c.Reason)
		texts = append(texts, c.String())
	}
	return strings.Join(names, ","), strings.Join(texts, ". ")
}
