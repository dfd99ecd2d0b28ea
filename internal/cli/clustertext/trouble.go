package clustertext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// Story is what is wrong with a cluster, on one line.
func Story(c *api.Cluster, now time.Time) string {
	text := explain.Coded(c.Code, cmp.Or(c.Message, FreshnessText(*c)))
	if c.Failures > 0 && c.LastFailure != nil && !c.Connected {
		text += fmt.Sprintf(" (%s, the last %s ago)", printer.Count(c.Failures, "failure"), printer.Duration(now.Sub(*c.LastFailure)))
	}
	return text
}

// FreshnessText is the worst state and the greatest age, which is empty when nothing
// was ever known.
func FreshnessText(c api.Cluster) string {
	return strings.TrimSpace(c.Freshness.Worst.State + " " + AgeText(c))
}

// AgeText is the greatest age of what is known of a cluster; empty when nothing ever was.
func AgeText(c api.Cluster) string {
	if age := c.Freshness.Worst.AgeSeconds; age != nil {
		return printer.Seconds(*age)
	}
	return ""
}

// RefusedText names one entry of each resource.
func RefusedText(refusals []api.Refusal) string {
	parts := make([]string, len(refusals))
	for i, r := range refusals {
		parts[i] = fmt.Sprintf("%s: %d", r.Resource, r.Count)
		switch {
		case r.Key != "":
			parts[i] += fmt.Sprintf(", such as %s: %s", r.Key, r.Message)
		case len(r.Reasons) > 0:
			parts[i] += fmt.Sprintf(" for %s", strings.Join(slices.Sorted(maps.Keys(r.Reasons)), ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// RefusalRemedies say what to do about refused entries, once for each reason and in the
// order of their texts.
func RefusalRemedies(clusters ...api.Cluster) []string {
	remedies := make(map[string]string)
	for _, c := range clusters {
		for _, r := range c.Refusals {
			for reason, remedy := range r.Remedies {
				remedies[reason] = cmp.Or(remedies[reason], remedy)
			}
		}
	}
	return slices.Compact(slices.Sorted(maps.Values(remedies)))
}

// ClusterColor is the color of a cluster's state.
func ClusterColor(c api.Cluster) printer.Color {
	switch c.State {
	case "ready":
		return printer.Green
	case "syncing", "removing":
		return printer.Yellow
	default:
		return printer.Red
	}
}
