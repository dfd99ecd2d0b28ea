package findings

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// policyEvents returns the events of the disconnect policy for one cluster between two looks.
func policyEvents(old, c *remotecluster.Status) []Event {
	if c.Forecast == nil || cmp.Or(old.Forecast, new(disconnect.Forecast)).State == c.Forecast.State { // without a policy, the forecast is to keep the cluster
		return nil
	}
	o, evidence := c.Forecast, policyEvidence(c.Forecast)
	switch o.State {
	case disconnect.Demote:
		return []Event{event(c, "cluster-demoted", codes.ClusterDemoted,
			"its service backends are used only where no other cluster has a usable one: "+o.Why, evidence...)}
	case disconnect.Withdraw:
		return []Event{event(c, "cluster-withdrawn", codes.ClusterWithdrawn,
			"its service backends are removed where another cluster has a usable one: "+o.Why, evidence...)}
	default:
		return []Event{event(c, "cluster-restored", codes.ClusterKept, "its service backends are used again as those of any cluster", evidence...)}
	}
}

// policyEvidence returns a list of name, value, name, value.
func policyEvidence(o *disconnect.Forecast) []string {
	var evidence []string
	for _, moment := range []struct {
		name string
		at   time.Time
	}{
		{"confirmed", o.Evidence.AsOf}, {"connectedSince", o.Evidence.Connected}, {"heartbeat", o.Evidence.Heartbeat},
	} {
		if !moment.at.IsZero() {
			evidence = append(evidence, moment.name, moment.at.UTC().Format(time.RFC3339))
		}
	}
	if o.Evidence.Error != "" {
		evidence = append(evidence, "error", o.Evidence.Error)
	}
	return evidence
}

// holdEvents returns an event when the policy begins or ceases to be held. This is the same for all clusters, so all of
// them have the same data about it.
func holdEvents(before, now []remotecluster.Status) []Event {
	was, is := held(before), held(now)
	switch {
	case was == nil && is != nil:
		var failing []string
		for i := range now {
			if o := now[i].Forecast; o != nil && o.Doubtful {
				failing = append(failing, now[i].Name)
			}
		}
		return []Event{{
			Clusters: failing, Kind: "policy-held", Code: codes.PolicyHeld, Resource: "clusters",
			Message: fmt.Sprintf("%d of %d clusters are in doubt at the same time (%s): the cause is probably local, so no cluster is demoted or withdrawn until at most half of them are",
				is.Failing, is.Judged, printer.Some(failing, 5)),
			Evidence: map[string]string{"inDoubt": strings.Join(failing, ","), "since": is.Held.UTC().Format(time.RFC3339)},
		}}
	case was != nil && is == nil && len(now) > 0:
		return []Event{{
			Clusters: []string{}, Kind: "policy-resumed", Code: codes.PolicyResumed, Resource: "clusters",
			Message:  "no more than half of the clusters are in doubt: the disconnect policy continues",
			Evidence: map[string]string{"heldSince": was.Held.UTC().Format(time.RFC3339)},
		}}
	}
	return nil
}

// held returns the forecast of a cluster while the policy is held; nil while it is not.
func held(clusters []remotecluster.Status) *disconnect.Forecast {
	for i := range clusters {
		if o := clusters[i].Forecast; o != nil && !o.Held.IsZero() {
			return o
		}
	}
	return nil
}
