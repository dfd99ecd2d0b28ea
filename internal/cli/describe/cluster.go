package describe

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/lookup"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

type clusterDescription struct {
	Cluster   *api.Cluster     `json:"cluster"`
	Impact    *api.Loss        `json:"impact"` // null when no service can lose backends with it
	Why       *api.Explanation `json:"why"`
	Health    []api.Health     `json:"health"`
	Conflicts []api.Conflict   `json:"conflicts"` // at most a page of them
	Events    []api.Event      `json:"events"`    // the last ones, the newest first
}

func describeCluster(ctx context.Context, g *gatherer, c *api.Cluster) description {
	d := &clusterDescription{Cluster: c, Why: g.why(ctx, "clusters", c.Name)}
	if c.Trouble != nil {
		if st := get[api.Status](ctx, g, "status"); st != nil {
			d.Impact = st.Impact.OfCluster(c.Name)
		}
	}
	d.Health, _ = list[api.Health](ctx, g, "health", client.Query{Cluster: c.Name})
	d.Conflicts, _ = list[api.Conflict](ctx, g, "conflicts", client.Query{Cluster: c.Name, Limit: api.MaxLimit})
	d.Events = g.events(ctx, c.Name)
	return d
}

func (d *clusterDescription) page(p *printer.Page, now time.Time) {
	clustertext.WritePage(p, d.Cluster, d.Impact, now)
	explain.WriteWhy(p, d.Why, now)
	for i := range d.Health {
		h := &d.Health[i]
		p.Section("Health of %s", h.Name)
		pageHealth(p, h, now)
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

// healthDescription is the health of a part of the agent, with the cluster that it is about.
type healthDescription struct {
	Health  *api.Health  `json:"health"`
	Cluster *api.Cluster `json:"cluster"` // null when it is not about a cluster
	Events  []api.Event  `json:"events"`  // of the cluster
}

func describeHealth(ctx context.Context, g *gatherer, h *api.Health) description {
	if h.Cluster == "" {
		return &healthDescription{Health: h, Events: []api.Event{}}
	}
	return &healthDescription{Health: h, Cluster: g.cluster(ctx, h.Cluster), Events: g.events(ctx, h.Cluster)}
}

func (d *healthDescription) page(p *printer.Page, now time.Time) {
	p.Line("Health of %s", d.Health.Name)
	p.Blank()
	pageHealth(p, d.Health, now)
	if d.Cluster != nil {
		p.Section("Cluster")
		p.Fields(printer.F("Cluster", clusterLine(d.Cluster)...), printer.F("Last error", d.Cluster.LastError))
		for _, remedy := range clustertext.Remedies(*d.Cluster) {
			p.Advice("%s", remedy)
		}
	}
	pageEvents(p, d.Events, now)
}

type conflictDescription struct {
	Conflict *api.Conflict `json:"conflict"`
	Clusters []api.Cluster `json:"clusters"` // those that are in the mesh
	Lookup   *api.Lookup   `json:"lookup"`   // null when it is not about an address
}

func describeConflict(ctx context.Context, g *gatherer, c *api.Conflict) description {
	d := &conflictDescription{Conflict: c, Clusters: []api.Cluster{}}
	for _, name := range c.Clusters {
		if cluster := g.cluster(ctx, name); cluster != nil {
			d.Clusters = append(d.Clusters, *cluster)
		}
	}
	if address, ok := addressOf(c.Subject); ok {
		d.Lookup = g.lookup(ctx, address)
	}
	return d
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
		about := codes.Subject{Clusters: d.Conflict.Clusters, Service: d.Conflict.Subject, Address: addressIn(d.Conflict.Message)}
		if d.Lookup != nil {
			about.Address = d.Lookup.IP
		}
		p.Advice("%s", about.Fill(e.Remedy))
	}
	if len(d.Clusters) > 0 {
		p.Section("The clusters now")
		for i := range d.Clusters {
			p.Fields(printer.F(d.Clusters[i].Name, clusterLine(&d.Clusters[i])...))
		}
	}
	if d.Lookup != nil && len(d.Lookup.Candidates) > 0 {
		p.Section("Claims of %s", d.Lookup.IP)
		printer.Rows(p, lookup.Candidates(), d.Lookup.Candidates)
		lookup.WriteUnconfirmed(p, d.Lookup)
	}
}

type eventDescription struct {
	Event   *api.Event   `json:"event"`
	Cluster *api.Cluster `json:"cluster"` // null when it is not about a cluster, or the cluster was removed
	Exists  bool         `json:"exists"`  // whether the object of the event exists now
}

func describeEvent(ctx context.Context, g *gatherer, e *api.Event) description {
	d := &eventDescription{Event: e, Cluster: g.cluster(ctx, e.Cluster)}
	if about, none := resource.Find(e.Resource); none == nil && e.Name != "" && g.err == nil {
		d.Exists, g.err = about.Exists(ctx, g.cl, e.Name)
	}
	return d
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
	if d.Exists && codes.Plain(e.Name) {
		p.Advice("'mesh-agent describe %s %s' shows it as it is now.", e.Resource, e.Name)
	}
}

// addressIn returns the first address, or network, in a message; empty for none.
func addressIn(message string) string {
	for word := range strings.FieldsSeq(message) {
		if p, err := netip.ParsePrefix(strings.TrimRight(word, ",.:;")); err == nil {
			return p.Addr().String()
		}
	}
	return ""
}
