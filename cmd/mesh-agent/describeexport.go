package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// exportParts splits "CLUSTER/NAMESPACE/NAME". What is missing at its beginning is
// taken from the flags, as in pair. Nil: not such a name.
func exportParts(name string, q *client.Query) []string {
	parts := strings.Split(name, "/")
	if len(parts) < 2 {
		parts = slices.Insert(parts, 0, q.Namespace)
	}
	if len(parts) < 3 {
		parts = slices.Insert(parts, 0, q.Cluster)
	}
	if len(parts) != 3 {
		return nil
	}
	if parts[0] == q.Cluster {
		q.Cluster = ""
	}
	if parts[1] == q.Namespace {
		q.Namespace = ""
	}
	if slices.Contains(parts, "") {
		return nil
	}
	return parts
}

func exportName(e api.ServiceExport) string { return e.Cluster + "/" + e.Namespace + "/" + e.Name }

func exportTable(since func(time.Time) time.Duration) printer.Table[api.ServiceExport] {
	return printer.Table[api.ServiceExport]{
		{Title: "NAMESPACE", Text: func(e api.ServiceExport) string { return e.Namespace }},
		{Title: "NAME", Text: func(e api.ServiceExport) string { return e.Name }},
		{Title: "CLUSTER", Text: func(e api.ServiceExport) string { return e.Cluster }},
		{Title: "TYPE", Text: func(e api.ServiceExport) string { return e.Type }},
		{Title: "AFFINITY", Text: sessionAffinityText},
		{Title: "PORTS", Text: func(e api.ServiceExport) string { return portTexts(e.Ports) }},
		{Title: "AGE", Right: true, Text: func(e api.ServiceExport) string { return printer.Duration(since(e.Created)) }},
	}
}

func sessionAffinityText(e api.ServiceExport) string {
	if e.SessionAffinity != wire.SessionAffinityClientIP {
		return e.SessionAffinity
	}
	return e.SessionAffinity + " " + strconv.Itoa(e.SessionAffinityTimeoutSeconds) + "s"
}

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
	if d.Exports, err = all[api.ServiceExport](ctx, cl, "serviceexports", client.Query{Namespace: e.Namespace, Name: e.Name}); err != nil {
		return nil, err
	}
	if d.Cluster, err = clusterOf(ctx, cl, e.Cluster); err != nil {
		return nil, err
	}
	d.Conflicts, err = all[api.Conflict](ctx, cl, "conflicts", client.Query{Name: e.Namespace + "/" + e.Name})
	return d, err
}

func (d *exportDescription) page(p *printer.Page, now time.Time) {
	e := d.Export
	p.Line("Export of the service %s by %s", printer.Painted{Text: e.Namespace + "/" + e.Name, Color: printer.Bold}, e.Cluster)
	p.Blank()
	p.Fields(present(
		printer.F("Type", e.Type),
		printer.F("Session affinity", sessionAffinityText(*e)),
		printer.F("Ports", portTexts(e.Ports)),
		printer.F("Created", moment(&e.Created, now)),
		printer.F("Cluster", clusterLine(d.Cluster)...),
		printer.F("Known as of", freshnessOf(d.Cluster, func(c *api.Cluster) *api.Freshness { return &c.Freshness.ServiceExports })),
	)...)
	p.Section("Who exports it (%d)", len(d.Exports))
	printer.Rows(p, exportTable(now.Sub), d.Exports)
	p.End()
	pageConflicts(p, d.Conflicts)
}
