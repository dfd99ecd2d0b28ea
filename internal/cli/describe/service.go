package describe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
)

// serviceDescription is a service with what led to it.
type serviceDescription struct {
	Service   *api.Service         `json:"service"`
	Why       *reasons.Explanation `json:"why"` // with what each cluster of the mesh has of it
	Conflicts []api.Conflict       `json:"conflicts"`
}

func describeService(ctx context.Context, cl *client.Client, s *api.Service) (description, error) {
	x, err := why(ctx, cl, "services", s.Namespace, s.Name)
	if err != nil {
		return nil, err
	}
	conflicts, err := resource.Every[api.Conflict](ctx, cl, "conflicts", client.Query{Name: s.Namespace + "/" + s.Name})
	return &serviceDescription{Service: s, Why: x, Conflicts: conflicts}, err
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
		p.End()
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
	return "yes: shared by " + strings.Join(sharing, ", ")
}

func affinityText(affinity string) string {
	switch affinity {
	case "local":
		return "local: the own cluster's backends are preferred, the others are used when it has none that is healthy"
	case "remote":
		return "remote: the other clusters' backends are preferred, the own ones are used when they have none that is healthy"
	}
	return "none: the backends of all clusters are used alike"
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
