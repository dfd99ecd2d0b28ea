package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

type serviceDescription struct {
	Service   *api.Service     `json:"service"`
	Why       *api.Explanation `json:"why"` // with the parts of each cluster of the mesh
	Conflicts []api.Conflict   `json:"conflicts"`
	// Connections are the backends for a client's connections; null when they were not requested.
	Connections *api.ServiceBackends `json:"connections,omitempty"`
}

func describeService(ctx context.Context, g *gatherer, s *api.Service) description {
	d := &serviceDescription{Service: s, Why: g.why(ctx, "services", s.Namespace, s.Name), Conflicts: g.conflicts(ctx, s.Namespace+"/"+s.Name)}
	if of := g.connections; of.asked() && g.err == nil {
		d.Connections, g.err = g.cl.Backends(ctx, s.Namespace, s.Name, of.port, of.zone)
	}
	return d
}

func (d *serviceDescription) page(p *printer.Page, now time.Time) {
	s := d.Service
	p.Line("Service %s", printer.Painted{Text: s.Namespace + "/" + s.Name, Color: printer.Bold})
	p.Blank()
	p.Fields(
		printer.F("Global", whyGlobal(s)),
		printer.F("Affinity", affinityText(s.Affinity)),
		printer.F("Backends", backendsText(s)),
	)
	explain.WriteWhy(p, d.Why, now)
	if len(s.Backends) > 0 {
		p.Section("Backends (%d)", len(s.Backends))
		printer.Rows(p, backendTable(s.Affinity), s.Backends)
	}
	if d.Connections != nil {
		pageConnections(p, d.Connections)
	}
	pageConflicts(p, d.Conflicts)
}

func whyGlobal(s *api.Service) string {
	var sharing []string
	for _, c := range s.Clusters {
		if c.Shared {
			sharing = append(sharing, c.Cluster)
		}
	}
	if len(sharing) == 0 {
		return "no: no cluster is known to share it"
	}
	slices.SortFunc(sharing, natural.Compare)
	return "yes: shared by " + strings.Join(sharing, ", ")
}

func affinityText(affinity string) string {
	switch affinity {
	case "local":
		return "local: the own cluster's backends are preferred, the others are used when it has none that is healthy"
	case "remote":
		return "remote: the other clusters' backends are preferred, the own ones are used when they have none that is healthy"
	}
	return "none: the backends of all clusters are used equally"
}

func backendsText(s *api.Service) string {
	clusters := make(map[string]bool)
	for _, b := range s.Backends {
		clusters[b.Cluster] = true
	}
	if len(s.Backends) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d in %s", len(s.Backends), printer.Count(len(clusters), "cluster"))
}

func backendTable(affinity string) printer.Table[api.Backend] {
	t := printer.Table[api.Backend]{
		{Title: "CLUSTER", Text: func(b api.Backend) string { return b.Cluster }},
		{Title: "ADDRESS", Text: func(b api.Backend) string { return b.IP }},
		{Title: "PORTS", Text: func(b api.Backend) string { return resource.PortTexts(b.Ports) }},
		{Title: "ZONE", Text: func(b api.Backend) string { return b.Zone }},
	}
	if affinity != "none" {
		t = append(t, printer.Column[api.Backend]{Title: "PREFERRED", Text: func(b api.Backend) string { return printer.YesNo(b.Preferred) }})
	}
	return append(t, printer.Column[api.Backend]{Title: "HOST NAME", Text: func(b api.Backend) string { return b.Hostname }})
}

type exportDescription struct {
	Export    *api.ServiceExport  `json:"export"`
	Exports   []api.ServiceExport `json:"exports"` // also the described one
	Cluster   *api.Cluster        `json:"cluster"` // null for the own cluster
	Conflicts []api.Conflict      `json:"conflicts"`
}

func describeExport(ctx context.Context, g *gatherer, e *api.ServiceExport) description {
	d := &exportDescription{Export: e}
	d.Exports, _ = list[api.ServiceExport](ctx, g, "serviceexports", client.Query{Namespace: e.Namespace, Name: e.Name})
	d.Cluster, d.Conflicts = g.cluster(ctx, e.Cluster), g.conflicts(ctx, e.Namespace+"/"+e.Name)
	return d
}

func (d *exportDescription) page(p *printer.Page, now time.Time) {
	e := d.Export
	p.Line("Export of the service %s by %s", printer.Painted{Text: e.Namespace + "/" + e.Name, Color: printer.Bold}, e.Cluster)
	p.Blank()
	p.Fields(printer.Present(
		printer.F("Type", e.Type),
		printer.F("Session affinity", resource.SessionAffinityText(*e)),
		printer.F("Ports", resource.PortTexts(e.Ports)),
		printer.F("Created", printer.Moment(&e.Created, now)),
		printer.F("Cluster", clusterLine(d.Cluster)...),
		printer.F("Known as of", freshnessOf(d.Cluster, func(c *api.Cluster) *api.Freshness { return &c.Freshness.ServiceExports })),
	)...)
	p.Section("Clusters that export it (%d)", len(d.Exports))
	printer.Rows(p, resource.ExportTable(now.Sub), d.Exports)
	pageConflicts(p, d.Conflicts)
}
