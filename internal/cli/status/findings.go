package status

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Maximum numbers of conflicts and notices that status shows.
const (
	mostConflicts = 5
	mostNotices   = 5
)

func firstConflicts(ctx context.Context, cl *client.Client, st *api.Status) ([]api.Conflict, error) {
	if st.Summary.Conflicts == 0 {
		return nil, nil
	}
	conflicts, _, err := resource.Collect[api.Conflict](ctx, cl, "conflicts", client.Query{Limit: mostConflicts})
	return conflicts, err
}

// writeImpact writes the services that have backends in clusters whose data is not confirmed as current.
func (v *Page) writeImpact(p *printer.Page) {
	if v.Impact == nil {
		return
	}
	for _, line := range clustertext.ImpactLines(&v.Impact.Loss, printer.Some(v.Impact.Clusters, mostStories)) {
		p.Item("", "%s", line)
	}
}

// writeConflicts writes the conflicts between clusters. The clusters may be ready all the same.
func (v *Page) writeConflicts(p *printer.Page) {
	if len(v.conflicts) == 0 {
		return
	}
	p.Section("Conflicts (%d)", max(v.Summary.Conflicts, len(v.conflicts)))
	shown := v.conflicts[:min(len(v.conflicts), mostConflicts)]
	for _, c := range shown {
		p.Item(c.Kind+"  ", "%s", explain.Coded(c.Code, c.Message))
	}
	first := shown[0].Kind + "/" + shown[0].Subject
	if !codes.Plain(first) {
		first = "NAME"
	}
	if n := v.Summary.Conflicts - len(shown); n > 0 {
		p.Advice("%d more: 'mesh-agent get conflicts' lists them, 'mesh-agent describe conflict %s' says what to do.", n, first)
	} else {
		p.Advice("'mesh-agent describe conflict %s' says what to do; 'mesh-agent get conflicts' has the names.", first)
	}
}

// writeNotices writes expected or possible future problems of the agent and of clusters, each once with its clusters.
func (v *Page) writeNotices(p *printer.Page) {
	var all []api.Notice
	var remedies clustertext.Advice
	of := make(map[api.Notice][]string)
	add := func(name string, notices []api.Notice) {
		for _, n := range notices {
			remedies.AddFor(n.Code, n.Remedy, name)
			n.Remedy = "" // it contains the name of the cluster
			if of[n] == nil {
				all = append(all, n)
			}
			of[n] = append(of[n], name)
		}
	}
	if v.TLS != nil {
		add("this agent", v.TLS.Notices)
	}
	if own := v.OwnCluster; own != nil {
		add(own.Name, own.Notices)
	}
	for _, c := range v.Clusters {
		add(c.Name, c.Notices)
	}
	if len(all) == 0 {
		return
	}
	p.Section("Notices (%d)", len(all))
	shown := all
	if !v.all && len(all) > mostNotices {
		shown = all[:mostNotices]
	}
	width := 0
	for _, n := range shown {
		width = max(width, len(printer.Some(of[n], mostStories)))
	}
	for _, n := range shown {
		p.Item(fmt.Sprintf("%-*s  ", width, printer.Some(of[n], mostStories)), "%s", explain.Coded(n.Code, clustertext.Relative(n.Message, v.Now)))
	}
	if rest := len(all) - len(shown); rest > 0 {
		p.Line("… and %d more (--all lists them)", rest)
	}
	for _, remedy := range remedies.Texts() {
		p.Advice("%s", remedy)
	}
}

func writeExit(p *printer.Page, why []string) {
	if len(why) > 0 {
		p.Blank()
		p.Text("exit 1: %s (--fail-on chooses what counts)", strings.Join(why, ", "))
	}
}

// writePolicy writes the clusters whose service backends are not used as usual, or soon will not be, and whether the
// policy is held.
func (v *Page) writePolicy(p *printer.Page) {
	var concerned []api.Cluster
	var held *api.ClusterPolicy
	for _, c := range v.worstFirst {
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
		v.writeStories(p, concerned, func(c *api.Cluster) string {
			return clustertext.Relative(strings.TrimSuffix(clustertext.PolicyState(c.Policy, v.Now)+"; "+clustertext.PolicyNext(c.Policy), "; "), v.Now)
		})
		p.Advice("%s", codes.Cluster(concerned[0].Name).Fill("Nodes, identities and addresses are kept, and also the last usable backends of a service. 'mesh-agent describe cluster NAME' has the evidence."))
	}
}

// writeRejected writes refused entries. The cluster may be ready all the same.
func (v *Page) writeRejected(p *printer.Page) {
	refusing := slices.DeleteFunc(slices.Clone(v.worstFirst), func(c api.Cluster) bool { return len(c.Refusals) == 0 })
	if len(refusing) == 0 {
		return
	}
	p.Section("Entries that were refused (%s)", printer.Count(len(refusing), "cluster"))
	v.writeStories(p, refusing, func(c *api.Cluster) string { return clustertext.RefusedText(c.Refusals) })
	for _, remedy := range clustertext.RefusalRemedies(refusing...) {
		p.Advice("%s", remedy)
	}
}
