// Package clustertext shows a cluster as a text for a person: its state, what is wrong
// with it, and what to do about it.
package clustertext

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// KnownAsOf says until when the match is known to be so.
func KnownAsOf(f *api.Freshness) string {
	if f == nil || f.AsOf == nil {
		return "never: the copy is not complete"
	}
	text := f.AsOf.UTC().Format(time.RFC3339)
	if f.AgeSeconds != nil {
		text += fmt.Sprintf(" (%s ago)", printer.Seconds(*f.AgeSeconds))
	}
	if f.State != "synced" {
		text += ", " + f.State
	}
	return text
}

// WritePage shows everything that the status has about one cluster.
func WritePage(p *printer.Page, c *api.Cluster, now time.Time) {
	p.Line("Cluster %s (ID %d): %s", c.Name, c.ID, printer.Painted{Text: c.State, Color: ClusterColor(*c)})
	if c.Message != "" {
		p.Text("%s", explain.Coded(c.Code, c.Message))
	}
	if c.Trouble != nil {
		p.Advice("%s", cmp.Or(c.Remedy, c.Trouble.Remedy))
	}
	p.Blank()
	connected := "no"
	if c.ConnectedSince != nil {
		connected = "since " + printer.Moment(c.ConnectedSince, now)
	}
	failures := []string{"none"}
	if c.LastFailure != nil {
		failures = []string{fmt.Sprintf("%d, the last %s", c.Failures, printer.Moment(c.LastFailure, now)), c.LastError}
	}
	fields := append(policyField(c, now),
		printer.F("Connected", connected),
		printer.F("Endpoints", c.Endpoints...),
		printer.F("Etcd cluster ID", c.EtcdClusterID),
		printer.F("Configuration file", c.ConfigFile),
		printer.F("Capabilities", capabilities(c.Capabilities)...),
		printer.F("Copied by a mirror", printer.YesNo(c.Cached)),
		printer.F("Failures", failures...),
		printer.F("Certificate", certificateText(c.CertificateExpires, now)),
		printer.F("Heartbeat", HeartbeatText(c.HeartbeatAgeSeconds)),
		printer.F("Last event", printer.Moment(c.LastEvent, now)),
	)
	p.Fields(fields...)
	p.Blank()
	rows := resourceRows(c)
	printer.Rows(p, resourceTable(now), rows)
	for _, r := range rows {
		if r.fresh.Message != "" {
			p.Blank()
			p.Text("%s: %s", r.name, r.fresh.Message)
		}
	}
	if len(c.Refusals) > 0 {
		p.Blank()
		p.Text("Refused: %s", RefusedText(c.Refusals))
		for _, remedy := range RefusalRemedies(*c) {
			p.Advice("%s", remedy)
		}
	}
}

func capabilities(c api.Capabilities) []string {
	var parts []string
	flag := func(name string, on *bool) {
		if on != nil {
			parts = append(parts, name+"="+strconv.FormatBool(*on))
		}
	}
	flag("syncedCanaries", c.SyncedCanaries)
	flag("cached", c.Cached)
	if c.MaxConnectedClusters != nil {
		parts = append(parts, fmt.Sprintf("maxConnectedClusters=%d", *c.MaxConnectedClusters))
	}
	flag("serviceExportsEnabled", c.ServiceExportsEnabled)
	if c.EndpointSlicesExportMode != nil && *c.EndpointSlicesExportMode != "" {
		parts = append(parts, "endpointSlicesExportMode="+*c.EndpointSlicesExportMode)
	}
	return parts
}

// copyText is the state of a copy, with how far it is while it is made.
func copyText(f api.Freshness) string {
	if f.Total > 0 && f.State == "syncing" {
		return fmt.Sprintf("%s %d of %d", f.State, f.Read, f.Total)
	}
	return f.State
}

// certificateText says until when the client certificate is valid.
func certificateText(until *time.Time, now time.Time) string {
	switch {
	case until == nil:
		return "none"
	case now.After(*until):
		return "expired " + printer.Moment(until, now)
	}
	return fmt.Sprintf("valid until %s (%s from now)", until.UTC().Format(time.RFC3339), printer.Duration(until.Sub(now)))
}

// HeartbeatText says when the heartbeat was last seen.
func HeartbeatText(age *float64) string {
	if age == nil {
		return "never seen"
	}
	return printer.Seconds(*age) + " ago"
}

// row is one resource of a cluster.
type row struct {
	name     string
	synced   bool
	n, wrong int
	fresh    api.Freshness
}

// resourceRows leaves out what the cluster does not write, unless that is in
// doubt itself.
func resourceRows(c *api.Cluster) []row {
	var rows []row
	for r, f := range c.Freshness.All() {
		if c.Has(r) {
			rows = append(rows, row{r.Describe().Field, *c.Synced.Of(r), *c.Counts.Of(r), *c.Rejected.Of(r), *f})
		}
	}
	return rows
}

func resourceTable(now time.Time) printer.Table[row] {
	return printer.Table[row]{
		{Title: "RESOURCE", Text: func(r row) string { return r.name }},
		{Title: "SYNCED", Text: func(r row) string { return printer.YesNo(r.synced) }, Color: func(r row) printer.Color { return printer.WellColor(r.synced) }},
		{Title: "ENTRIES", Right: true, Text: func(r row) string { return strconv.Itoa(r.n) }},
		{Title: "REFUSED", Right: true, Text: func(r row) string { return strconv.Itoa(r.wrong) }},
		{Title: "FRESHNESS", Text: func(r row) string { return copyText(r.fresh) }, Color: func(r row) printer.Color { return printer.WellColor(r.fresh.State == "synced") }},
		{Title: "LAG", Right: true, Text: func(r row) string {
			if r.fresh.Lag == nil {
				return ""
			}
			return printer.Seconds(r.fresh.Lag.P99Seconds)
		}},
		{Title: "EQUAL TO THE REMOTE AS OF", Text: func(r row) string {
			if r.fresh.AsOf == nil {
				return "never"
			}
			if r.wrong > 0 {
				return fmt.Sprintf("%s, but for %d refused", printer.Moment(r.fresh.AsOf, now), r.wrong)
			}
			return printer.Moment(r.fresh.AsOf, now)
		}},
	}
}

// Sum adds up the counts of all resources.
func Sum(of api.ByResource[int]) int {
	total := 0
	for _, n := range of.All() {
		total += *n
	}
	return total
}
