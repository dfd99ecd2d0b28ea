package status

import (
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// writePolicy tells of the clusters whose service backends are not used as usual,
// or soon will not be, and whether the policy is held.
func (v *View) writePolicy(p *printer.Page, clusters []api.Cluster) {
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
		p.Text("%s", clustertext.HeldText(held, v.Now))
		p.Advice("Look at the network, the DNS and the clock of this node first. Remove the client files of clusters that are gone for good: they count.")
	}
	if len(concerned) > 0 {
		p.Section("Service backends in doubt (%s)", printer.Count(len(concerned), "cluster"))
		v.writeStories(p, concerned, func(c *api.Cluster) string { return policyStory(c.Policy, v.Now) })
		p.Advice("Nodes, identities and addresses are kept, and so are the last usable backends of a service. 'mesh-agent describe cluster NAME' has the evidence.")
	}
	p.End()
}

// policyStory is the same on one line.
func policyStory(p *api.ClusterPolicy, now time.Time) string {
	text := clustertext.PolicyState(p, now)
	if next := clustertext.PolicyNext(p); next != "" {
		text += "; " + next
	}
	return text
}
