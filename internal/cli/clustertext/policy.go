package clustertext

import (
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// policyField says how the service backends of a cluster are used, why, and what
// happens next; nothing of a cluster without a policy.
func policyField(c *api.Cluster, now time.Time) []printer.Field {
	if c.Policy == nil {
		return nil
	}
	lines := []string{PolicyState(c.Policy, now)}
	for _, line := range []string{c.Policy.Reason, PolicyNext(c.Policy)} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	if c.Policy.Held != nil {
		lines = append(lines, HeldText(c.Policy, now))
	}
	return []printer.Field{printer.F("Service backends", lines...)}
}

// PolicyState says how the backends are used at this moment.
func PolicyState(p *api.ClusterPolicy, now time.Time) string {
	switch p.State {
	case api.PolicyDemote:
		return fmt.Sprintf("demoted since %s: used only where no other cluster has a usable one [%s]", printer.Moment(&p.Since, now), p.Code)
	case api.PolicyWithdraw:
		return fmt.Sprintf("withdrawn since %s: not used where another cluster has a usable one [%s]", printer.Moment(&p.Since, now), p.Code)
	default:
		return "used"
	}
}

// PolicyNext says what happens next, and when; empty for nothing.
func PolicyNext(p *api.ClusterPolicy) string {
	if p.NextAt == nil {
		return ""
	}
	when := p.NextAt.UTC().Format(time.RFC3339)
	switch {
	case p.Next == api.PolicyKeep:
		return "if it stays so they are used as before at " + when
	case p.Next == api.PolicyDemote && p.State == api.PolicyWithdraw:
		return "if it stays so they are used again where no other cluster has a usable one, at " + when
	case p.Next == api.PolicyDemote:
		return "unless it is confirmed before " + when + " they are demoted"
	default:
		return "unless it is confirmed before " + when + " they are withdrawn"
	}
}

// HeldText says since when the disconnect policy is held, and why.
func HeldText(p *api.ClusterPolicy, now time.Time) string {
	return fmt.Sprintf("no cluster is demoted or withdrawn since %s: %d of %d are in doubt at the same time, it is probably us [%s]",
		printer.Moment(p.Held, now), p.InDoubt, p.Judged, codes.PolicyHeld)
}
