// Package clustertext formats a cluster as text for users: its state, its problems, and their remedies.
package clustertext

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// KnownAsOf returns the time as of which the match is known to be current.
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

// WritePage writes all data that the status has about one cluster, and the services that can lose backends with it.
func WritePage(p *printer.Page, c *api.Cluster, lost *api.Loss, now time.Time) {
	id := "no ID in use"
	if c.ID != 0 {
		id = fmt.Sprint("ID ", c.ID)
	}
	p.Line("Cluster %s (%s): %s", c.Name, id, printer.Painted{Text: c.State, Color: ClusterColor(*c)})
	if c.Message != "" {
		p.Text("%s", explain.Coded(c.Code, c.Message))
	}
	if cause, known := codes.Find(c.Cause); known {
		p.Text("Cause: %s", explain.Coded(c.Cause, cause.Title))
	}
	for _, remedy := range Remedies(*c) {
		p.Advice("%s", remedy)
	}
	for _, line := range ImpactLines(lost, c.Name) {
		p.Item("", "%s", line)
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
		printer.F("Client file", c.ConfigFile),
		printer.F("Capabilities", capabilities(c.Capabilities)...),
		printer.F("Copied by a mirror", printer.YesNo(c.Cached)),
		printer.F("Failures", failures...),
		printer.F("Etcd version", cmp.Or(c.EtcdVersion, "not known")),
		printer.F("Certificates", certificateTexts(c, now)...),
		printer.F("Heartbeat", HeartbeatText(c.HeartbeatAgeSeconds)),
		printer.F("Last event", printer.Moment(c.LastEvent, now)),
	)
	p.Fields(fields...)
	for _, n := range c.Notices {
		p.Blank()
		p.Text("Notice: %s", explain.Coded(n.Code, n.Message))
		p.Advice("%s", n.Remedy)
	}
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
	for name, value := range c.All() {
		if value != "" {
			parts = append(parts, fmt.Sprintf("%s=%v", name, value))
		}
	}
	return parts
}

// copyText returns the state of a copy, with its progress during the first sync.
func copyText(f api.Freshness) string {
	if f.Total > 0 && f.State == "syncing" {
		return fmt.Sprintf("%s %d of %d", f.State, f.Read, f.Total)
	}
	return f.State
}

// certificateTexts returns when the certificates of the connection expire. An older agent gives only the time of the
// client certificate.
func certificateTexts(c *api.Cluster, now time.Time) []string {
	of := c.Certificates
	if cmp.Or(of.Client, c.CertificateExpires, of.Server, of.Authority) == nil {
		return []string{"none"}
	}
	texts := []string{"client " + certificateText(cmp.Or(of.Client, c.CertificateExpires), now)}
	if of.Server != nil {
		texts = append(texts, "etcd "+certificateText(of.Server, now))
	}
	if of.Authority != nil {
		texts = append(texts, "authority of the etcd "+certificateText(of.Authority, now))
	}
	return texts
}

// ListenerEnds returns when the certificates of the agent's listeners expire.
func ListenerEnds(of *api.ListenerCertificates, now time.Time) []string {
	texts := []string{"server " + certificateText(of.Server, now)}
	if of.Authority != nil {
		texts = append(texts, "above it "+certificateText(of.Authority, now))
	}
	if of.ClientAuthority != nil {
		texts = append(texts, "last authority of clients "+certificateText(of.ClientAuthority, now))
	}
	return texts
}

// FirstEnd returns the day on which the first certificate of the connection expires; "-" without any.
func FirstEnd(c api.Cluster) string {
	var first *time.Time
	for _, end := range []*time.Time{cmp.Or(c.Certificates.Client, c.CertificateExpires), c.Certificates.Server, c.Certificates.Authority} {
		if end != nil && (first == nil || end.Before(*first)) {
			first = end
		}
	}
	if first == nil {
		return "-"
	}
	return first.UTC().Format(time.DateOnly)
}

func certificateText(until *time.Time, now time.Time) string {
	switch {
	case until == nil:
		return "none"
	case now.After(*until):
		return "expired " + printer.Moment(until, now)
	}
	return fmt.Sprintf("valid until %s (%s from now)", until.UTC().Format(time.RFC3339), printer.Duration(until.Sub(now)))
}

// HeartbeatText returns when the heartbeat was last seen.
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

// resourceRows returns no row for a resource that the cluster does not write, unless it is unknown whether it does.
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
		{Title: "LISTED", Text: func(r row) string { return printer.YesNo(r.synced) }, Color: func(r row) printer.Color { return printer.WellColor(r.synced) }},
		{Title: "ENTRIES", Right: true, Text: func(r row) string { return strconv.Itoa(r.n) }},
		{Title: "REFUSED", Right: true, Text: func(r row) string { return strconv.Itoa(r.wrong) }},
		{Title: "FRESHNESS", Text: func(r row) string { return copyText(r.fresh) }, Color: func(r row) printer.Color { return printer.WellColor(r.fresh.State == "synced") }},
		{Title: "LAG", Right: true, Text: func(r row) string {
			if r.fresh.Lag == nil {
				return ""
			}
			return printer.Seconds(r.fresh.Lag.P99Seconds)
		}},
		{Title: "AS OF", Text: func(r row) string {
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

// policyField returns how the service backends of a cluster are used, why, and what happens next; no field for a
// cluster without a policy.
func policyField(c *api.Cluster, now time.Time) []printer.Field {
	if c.Policy == nil {
		return nil
	}
	lines := []string{PolicyState(c.Policy, now), c.Policy.Reason, PolicyNext(c.Policy)}
	if c.Policy.Held != nil {
		lines = append(lines, HeldText(c.Policy, now))
	}
	return []printer.Field{printer.F("Service backends", lines...)}
}

// PolicyState returns how the backends are used now.
func PolicyState(p *api.ClusterPolicy, now time.Time) string {
	switch p.State {
	case api.PolicyDemote:
		return fmt.Sprintf("demoted since %s: used only where no other cluster has a usable one [%s]", printer.Moment(&p.Since, now), p.Code)
	case api.PolicyWithdraw:
		return fmt.Sprintf("withdrawn since %s: not used where another cluster has a usable one [%s]", printer.Moment(&p.Since, now), p.Code)
	default:
		return "used"
	}
}

// PolicyNext returns the next change of the policy, and its time; empty for none.
func PolicyNext(p *api.ClusterPolicy) string {
	if p.NextAt == nil {
		return ""
	}
	when := p.NextAt.UTC().Format(time.RFC3339)
	switch {
	case p.Next == api.PolicyKeep:
		return "if it stays so they are used as before at " + when
	case p.Next == api.PolicyDemote && p.State == api.PolicyWithdraw:
		return "if it stays so they are used again where no other cluster has a usable one, at " + when
	case p.Next == api.PolicyDemote:
		return "unless it is confirmed before " + when + " they are demoted"
	default:
		return "unless it is confirmed before " + when + " they are withdrawn"
	}
}

// HeldText returns since when the disconnect policy is held, and why.
func HeldText(p *api.ClusterPolicy, now time.Time) string {
	return fmt.Sprintf("no cluster is demoted or withdrawn since %s: %d of %d are in doubt at the same time; the cause is probably local [%s]",
		printer.Moment(p.Held, now), p.InDoubt, p.Judged, codes.PolicyHeld)
}

// FreshnessText returns the worst state and the greatest age. The age is empty when no data was ever confirmed.
func FreshnessText(c api.Cluster) string {
	return strings.TrimSpace(c.Freshness.Worst.State + " " + AgeText(c))
}

// AgeText returns the greatest age of a cluster's data; empty when no data was ever confirmed.
func AgeText(c api.Cluster) string {
	if age := c.Freshness.Worst.AgeSeconds; age != nil {
		return printer.Seconds(*age)
	}
	return ""
}

// RefusedText returns the refusals of each resource, with one entry as an example.
func RefusedText(refusals []api.Refusal) string {
	parts := make([]string, len(refusals))
	for i, r := range refusals {
		parts[i] = fmt.Sprintf("%s: %d", r.Resource, r.Count)
		switch {
		case r.Key != "":
			parts[i] += fmt.Sprintf(", such as %s: %s", r.Key, r.Message)
		case len(r.Reasons) > 0:
			parts[i] += fmt.Sprintf(" for %s", strings.Join(slices.Sorted(maps.Keys(r.Reasons)), ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// RefusalRemedies returns the remedies of refused entries, one for each reason, in the order of their texts.
func RefusalRemedies(clusters ...api.Cluster) []string {
	remedies := make(map[string]string)
	for _, c := range clusters {
		for _, r := range c.Refusals {
			for reason, remedy := range r.Remedies {
				remedies[reason] = cmp.Or(remedies[reason], remedy)
			}
		}
	}
	return slices.Compact(slices.Sorted(maps.Values(remedies)))
}

// ClusterColor returns the color of a cluster's state.
func ClusterColor(c api.Cluster) printer.Color {
	switch c.State {
	case "ready":
		return printer.Green
	case "syncing", "removing":
		return printer.Yellow
	default:
		return printer.Red
	}
}
