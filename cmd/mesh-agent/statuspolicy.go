package main

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
	lines := []string{policyState(c.Policy, now)}
	for _, line := range []string{c.Policy.Reason, policyNext(c.Policy)} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	if c.Policy.Held != nil {
		lines = append(lines, heldText(c.Policy, now))
	}
	return []printer.Field{printer.F("Service backends", lines...)}
}

// policyState says how the backends are used at this moment.
func policyState(p *api.ClusterPolicy, now time.Time) string {
	switch p.State {
	case api.PolicyDemote:
		return fmt.Sprintf("demoted since %s: used only where no other cluster has a usable one [%s]", moment(&p.Since, now), p.Code)
	case api.PolicyWithdraw:
		return fmt.Sprintf("withdrawn since %s: not used where another cluster has a usable one [%s]", moment(&p.Since, now), p.Code)
	default:
		return "used"
	}
}

// policyNext says what happens next, and when; empty for nothing.
func policyNext(p *api.ClusterPolicy) string {
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

func heldText(p *api.ClusterPolicy, now time.Time) string {
	return fmt.Sprintf("no cluster is demoted or withdrawn since %s: %d of %d are in doubt at the same time, it is probably us [%s]",
		moment(p.Held, now), p.InDoubt, p.Judged, codes.PolicyHeld)
}

// writePolicy tells of the clusters whose service backends are not used as usual,
// or soon will not be, and whether the policy is held.
func (v *statusView) writePolicy(p *printer.Page, clusters []api.Cluster) {
	var concerned []api.Cluster
	var held *api.ClusterPolicy
	for _, c := range clusters {
		if c.Policy == nil {
			continue
		}
		if c.Policy.State != api.PolicyKeep || c.Policy.NextAt != nil {
			concerned = append(concerned, c)
		}
		if c.Policy.Held != nil {
			held = c.Policy
		}
	}
	if held != nil {
		p.Section("The disconnect policy is held")
		p.Text("%s", heldText(held, v.now))
		p.Advice("Look at the network, the DNS and the clock of this node first. Remove the client files of clusters that are gone for good: they count.")
	}
	if len(concerned) > 0 {
		p.Section("Service backends in doubt (%s)", count(len(concerned), "cluster"))
		v.writeStories(p, concerned, func(c *api.Cluster) string { return policyStory(c.Policy, v.now) })
		p.Advice("Nodes, identities and addresses are kept, and so are the last usable backends of a service. 'mesh-agent describe cluster NAME' has the evidence.")
	}
	p.End()
}

// policyStory is the same on one line.
func policyStory(p *api.ClusterPolicy, now time.Time) string {
	text := policyState(p, now)
	if next := policyNext(p); next != "" {
		text += "; " + next
	}
	return text
}
