package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// serviceDescription is a service with what each cluster of the mesh has of it.
type serviceDescription struct {
	Service   *api.Service   `json:"service"`
	Clusters  []serviceShare `json:"clusters"` // those that have it come first
	Conflicts []api.Conflict `json:"conflicts"`
}

// serviceShare is what one cluster has of a service.
type serviceShare struct {
	Cluster string `json:"cluster"`
	// Has is "yes", "no" or "unknown": no is said only of a cluster whose
	// services are known as of now, in each form in which it exports them.
	Has    string `json:"has"`
	Reason string `json:"reason"`
	State  string `json:"state"` // the cluster's; empty for the own one without a kvstore
	// Freshness is that of the cluster's services, in the form that is known
	// worst; null for the own one without a kvstore.
	Freshness *api.Freshness `json:"freshness"`
}

func describeService(ctx context.Context, cl *client.Client, s *api.Service) (description, error) {
	st, err := cl.Status(ctx)
	if err != nil {
		return nil, err
	}
	name := client.Query{Name: s.Namespace + "/" + s.Name}
	conflicts, err := all[api.Conflict](ctx, cl, "conflicts", name)
	return &serviceDescription{Service: s, Clusters: shares(s, st), Conflicts: conflicts}, err
}

// shares says of every cluster what it has of the service.
func shares(s *api.Service, st *api.Status) []serviceShare {
	has := make(map[string]bool)
	var shares []serviceShare
	clusters := st.Clusters
	if own := ownCluster(st); own != nil {
		clusters = append(slices.Clip(clusters), *own)
	}
	for _, part := range s.Clusters {
		has[part.Cluster] = true
		share := serviceShare{Cluster: part.Cluster, Has: "yes", Reason: part.Reason}
		if c := clusterNamed(clusters, part.Cluster); c != nil {
			_, f := knownServices(c)
			share.State, share.Freshness = c.State, &f
		}
		shares = append(shares, share)
	}
	for i := range clusters {
		if c := &clusters[i]; !has[c.Name] {
			shares = append(shares, absent(c))
			has[c.Name] = true
		}
	}
	// A pure observer is of no cluster.
	if own := st.Agent; !has[own.Cluster] && own.ClusterID != 0 {
		shares = append(shares, serviceShare{
			Cluster: own.Cluster, Has: "unknown", Reason: "the own cluster, whose services this agent does not read: may have it",
		})
	}
	return shares
}

// knownServices says whether the services of a cluster, in each form in which it
// exports them, were listed, and until when all of them are known.
func knownServices(c *api.Cluster) (synced bool, f api.Freshness) {
	synced, f.State = true, "synced"
	first := true
	for _, r := range resourceRows(c) {
		if r.name != "services" && r.name != "endpointSlices" {
			continue
		}
		synced = synced && r.synced
		if severity(r.fresh.State) > severity(f.State) {
			f.State = r.fresh.State
		}
		if first || r.fresh.AsOf == nil || f.AsOf != nil && r.fresh.AsOf.Before(*f.AsOf) {
			f.AsOf, f.AgeSeconds = r.fresh.AsOf, r.fresh.AgeSeconds
		}
		first = false
	}
	return synced, f
}

// absent says what is known of a cluster that does not show the service.
func absent(c *api.Cluster) serviceShare {
	synced, f := knownServices(c)
	share := serviceShare{Cluster: c.Name, Has: "unknown", State: c.State, Freshness: &f}
	switch {
	case synced && f.State == "synced":
		share.Has, share.Reason = "no", "does not have it"
	case synced && f.AsOf != nil:
		share.Reason = fmt.Sprintf("did not have it at %s, may have it by now", f.AsOf.UTC().Format(time.RFC3339))
	default:
		share.Reason = "may have it: the copy of its services is not complete"
	}
	if share.Has == "unknown" && c.Message != "" {
		share.Reason += "; " + c.Message
	}
	return share
}

func (d *serviceDescription) page(p *printer.Page, _ time.Time) {
	s := d.Service
	p.Line("Service %s", printer.Painted{Text: s.Namespace + "/" + s.Name, Color: printer.Bold})
	p.Blank()
	p.Fields(
		printer.F("Global", whyGlobal(s)),
		printer.F("Affinity", affinityText(s.Affinity)),
		printer.F("Backends", backendsText(s)),
	)
	p.Section("What each cluster has of it")
	width := 0
	for _, c := range d.Clusters {
		width = max(width, len(c.Cluster))
	}
	for _, c := range d.Clusters {
		text := c.Reason
		if c.Freshness != nil && c.Freshness.State == "synced" { // else the reason says it
			text += " (services known as of " + knownAsOf(c.Freshness) + ")"
		}
		p.Item(fmt.Sprintf("%-*s  %-7s  ", width, c.Cluster, c.Has), "%s", text)
	}
	p.End()
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
	return fmt.Sprintf("%d in %s", len(s.Backends), count(len(clusters), "cluster"))
}

func backendTable(affinity string) printer.Table[api.Backend] {
	t := printer.Table[api.Backend]{
		{Title: "CLUSTER", Text: func(b api.Backend) string { return b.Cluster }},
		{Title: "ADDRESS", Text: func(b api.Backend) string { return b.IP }},
		{Title: "PORTS", Text: func(b api.Backend) string { return portTexts(b.Ports) }},
		{Title: "ZONE", Text: func(b api.Backend) string { return b.Zone }},
	}
	if affinity != "none" {
		t = append(t, printer.Column[api.Backend]{Title: "PREFERRED", Text: func(b api.Backend) string { return yesNo(b.Preferred) }})
	}
	return append(t, printer.Column[api.Backend]{Title: "HOST NAME", Text: func(b api.Backend) string { return b.Hostname }})
}

// portTexts lists ports as in http=80/TCP.
func portTexts(ports []api.Port) string {
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(int(port.Port)) + "/" + port.Protocol
		if port.Name != "" {
			texts[i] = port.Name + "=" + texts[i]
		}
	}
	return strings.Join(texts, ",")
}
