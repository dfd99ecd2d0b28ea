package status

import (
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// writeRejected tells of entries that were refused: the cluster may be ready
// all the same.
func (v *View) writeRejected(p *printer.Page, clusters []api.Cluster) {
	var refusing []api.Cluster
	for _, c := range clusters {
		if len(c.Refusals) > 0 {
			refusing = append(refusing, c)
		}
	}
	if len(refusing) == 0 {
		return
	}
	p.Section("Entries that were refused (%s)", printer.Count(len(refusing), "cluster"))
	v.writeStories(p, refusing, func(c *api.Cluster) string { return clustertext.RefusedText(c.Refusals) })
	for _, remedy := range clustertext.RefusalRemedies(refusing) {
		p.Advice("%s", remedy)
	}
	p.End()
}
