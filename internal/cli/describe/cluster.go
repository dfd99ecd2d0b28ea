package describe

import (
	"context"
	"strconv"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/lookup"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
)

// clusterDescription is a cluster with its history and what disagrees with it.
type clusterDescription struct {
	Cluster   *api.Cluster         `json:"cluster"`
	Why       *reasons.Explanation `json:"why"`
	Health    []api.Health         `json:"health"`
	Conflicts []api.Conflict       `json:"conflicts"` // at most a page of them
	Events    []api.Event          `json:"events"`    // the latest, the newest first
}

func describeCluster(ctx context.Context, cl *client.Client, c *api.Cluster) (description, error) {
	d := &clusterDescription{Cluster: c}
	var err error
	if d.Why, err = why(ctx, cl, "clusters", c.Name); err != nil {
		return nil, err
	}
	if d.Health, err = resource.Every[api.Health](ctx, cl, "health", client.Query{Cluster: c.Name}); err != nil {
		return nil, err
	}
	if d.Conflicts, _, err = resource.Collect[api.Conflict](ctx, cl, "conflicts", client.Query{Cluster: c.Name}, api.MaxLimit); err != nil {
		return nil, err
	}
	d.Events, err = recentEvents(ctx, cl, c.Name)
	return d, err
}

func (d *clusterDescription) page(p *printer.Page, now time.Time) {
	clustertext.WritePage(p, d.Cluster, now)
	explain.WriteWhy(p, d.Why, now)
	for i := range d.Health {
		h := &d.Health[i]
		p.Section("Health of %s", h.Name)
		pageHealth(p, h, now)
		p.End()
	}
	pageConflicts(p, d.Conflicts)
	pageEvents(p, d.Events, now)
}

func pageHealth(p *printer.Page, h *api.Health, now time.Time) {
	p.Fields(
		printer.Field{Name: "State", Texts: []string{h.State}, Color: printer.WellColor(h.State == "ok")},
		printer.F("Message", h.Message),
		printer.F("Last success", printer.Moment(h.LastSuccess, now)),
		printer.F("Last failure", printer.Moment(h.LastFailure, now)),
		printer.F("Failures in a row", strconv.Itoa(h.ConsecutiveFailures)),
	)
}

// healthDescription is what something says of itself, with the cluster that it
// is about.
type healthDescription struct {
	Health  *api.Health  `json:"health"`
	Cluster *api.Cluster `json:"cluster"` // null when it is about none
	Events  []api.Event  `json:"events"`  // of the cluster
}

func describeHealth(ctx context.Context, cl *client.Client, h *api.Health) (description, error) {
	d := &healthDescription{Health: h, Events: []api.Event{}}
	var err error
	if h.Cluster == "" {
		return d, nil
	}
	if d.Cluster, err = clusterOf(ctx, cl, h.Cluster); err != nil {
		return nil, err
	}
	d.Events, err = recentEvents(ctx, cl, h.Cluster)
	return d, err
}

func (d *healthDescription) page(p *printer.Page, now time.Time) {
	p.Line("Health of %s", d.Health.Name)
	p.Blank()
	pageHealth(p, d.Health, now)
	if d.Cluster != nil {
		p.Section("Cluster")
		p.Fields(printer.F("Cluster", clusterLine(d.Cluster)...), printer.F("Last error", d.Cluster.LastError))
		if d.Cluster.Trouble != nil {
			p.Advice("%s", d.Cluster.Trouble.Remedy)
		}
		p.End()
	}
	pageEvents(p, d.Events, now)
}

// conflictDescription is a conflict with the clusters that are in it.
type conflictDescription struct {
	Conflict *api.Conflict `json:"conflict"`
	Clusters []api.Cluster `json:"clusters"` // those of them that the mesh has
	Lookup   *api.Lookup   `json:"lookup"`   // null when it is about no address
}

func describeConflict(ctx context.Context, cl *client.Client, c *api.Conflict) (description, error) {
	d := &conflictDescription{Conflict: c, Clusters: []api.Cluster{}}
	for _, name := range c.Clusters {
		cluster, err := clusterOf(ctx, cl, name)
		if err != nil {
			return nil, err
		}
		if cluster != nil {
			d.Clusters = append(d.Clusters, *cluster)
		}
	}
	var err error
	if address, ok := addressOf(c.Subject); ok {
		d.Lookup, err = cl.Lookup(ctx, address)
	}
	return d, err
}

func (d *conflictDescription) page(p *printer.Page, now time.Time) {
	p.Line("Conflict about the %s %s", d.Conflict.Kind, printer.Painted{Text: d.Conflict.Subject, Color: printer.Bold})
	p.Text("%s", d.Conflict.Message)
	p.Blank()
	p.Fields(printer.Present(
		printer.F("Code", d.Conflict.Code),
		printer.F("First seen", printer.Moment(&d.Conflict.Since, now)),
		printer.F("Clusters", d.Conflict.Clusters...),
		printer.F("Rule", d.Conflict.Rule),
	)...)
	if e, known := codes.Find(d.Conflict.Code); known {
		p.Advice("%s", e.Remedy)
	}
	if len(d.Clusters) > 0 {
		p.Section("The clusters now")
		for i := range d.Clusters {
			p.Fields(printer.F(d.Clusters[i].Name, clusterLine(&d.Clusters[i])...))
		}
		p.End()
	}
	if d.Lookup != nil && len(d.Lookup.Candidates) > 0 {
		p.Section("Who claims %s", d.Lookup.IP)
		printer.Rows(p, lookup.Candidates(), d.Lookup.Candidates)
		p.End()
		lookup.WriteUnconfirmed(p, d.Lookup)
	}
}

// eventDescription is an event with how its cluster is now.
type eventDescription struct {
	Event   *api.Event   `json:"event"`
	Cluster *api.Cluster `json:"cluster"` // null when it is about none, or that is gone
	Exists  bool         `json:"exists"`  // whether the object that it is about is there now
}

func describeEvent(ctx context.Context, cl *client.Client, e *api.Event) (description, error) {
	d := &eventDescription{Event: e}
	var err error
	if d.Cluster, err = clusterOf(ctx, cl, e.Cluster); err != nil {
		return nil, err
	}
	if about, none := resource.Find(e.Resource); none == nil && e.Name != "" {
		d.Exists, err = about.Exists(ctx, cl, e.Name)
	}
	return d, err
}

func (d *eventDescription) page(p *printer.Page, now time.Time) {
	e := d.Event
	p.Line("Event %s: %s", strconv.FormatUint(e.ID, 10), e.Kind)
	p.Text("%s", e.Message)
	p.Blank()
	p.Fields(printer.Present(
		printer.F("Time", printer.Moment(&e.Time, now)),
		printer.F("Code", e.Code),
		printer.F("About", resource.EventObject(*e)),
		printer.F("Evidence", printer.LabelLines(e.Evidence)...),
		printer.F("Cluster", e.Cluster),
		printer.F("Cluster now", clusterLine(d.Cluster)...),
	)...)
	if d.Exists {
		p.Advice("mesh-agent describe %s %s", e.Resource, e.Name)
	}
}
