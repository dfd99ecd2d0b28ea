package describe

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// exportDescription is an export with what all clusters say of the same service.
type exportDescription struct {
	Export    *api.ServiceExport  `json:"export"`
	Exports   []api.ServiceExport `json:"exports"` // with the one that is described
	Cluster   *api.Cluster        `json:"cluster"` // null for the own one
	Conflicts []api.Conflict      `json:"conflicts"`
}

func describeExport(ctx context.Context, cl *client.Client, e *api.ServiceExport) (description, error) {
	d := &exportDescription{Export: e}
	var err error
	if d.Exports, err = resource.Every[api.ServiceExport](ctx, cl, "serviceexports", client.Query{Namespace: e.Namespace, Name: e.Name}); err != nil {
		return nil, err
	}
	if d.Cluster, err = clusterOf(ctx, cl, e.Cluster); err != nil {
		return nil, err
	}
	d.Conflicts, err = resource.Every[api.Conflict](ctx, cl, "conflicts", client.Query{Name: e.Namespace + "/" + e.Name})
	return d, err
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
	p.Section("Who exports it (%d)", len(d.Exports))
	printer.Rows(p, resource.ExportTable(now.Sub), d.Exports)
	p.End()
	pageConflicts(p, d.Conflicts)
}
