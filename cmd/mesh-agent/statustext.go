package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// noClusters is what to do about an empty mesh.
const noClusters = "No remote clusters. For each of them put an etcd client file, named like the cluster, into the mesh directory: %s\n"

// writeStatus prints the whole status for a person: a summary, a line for each
// cluster with what is wrong first, and then what is wrong.
func writeStatus(w io.Writer, style printer.Style, st *api.Status, now time.Time) error {
	out := bufio.NewWriter(w)
	a, s := st.Agent, st.Summary
	fmt.Fprintf(out, "mesh-agent %s on %s, cluster %s (ID %d), up %s: %s\n",
		printer.Clean(a.Version), printer.Clean(a.Node), printer.Clean(a.Cluster), a.ClusterID,
		printer.Duration(now.Sub(a.Started)), paint(style, agentColor(st), st.State))
	fmt.Fprintf(out, "%d/%d clusters ready, %s, %s (%d global), %s, %s, %s\n\n",
		s.ClustersReady, s.Clusters, count(s.Nodes, "node"), count(s.Services, "service"), s.GlobalServices,
		counted(s.Identities, "identity", "identities"), counted(s.IPs, "address", "addresses"), count(s.Conflicts, "conflict"))
	if len(st.Clusters) == 0 {
		fmt.Fprintf(out, noClusters, printer.Clean(a.MeshDirectory))
		writeIgnored(out, style, st)
		return out.Flush()
	}
	clusters := worstFirst(st.Clusters)
	items := func(yield func(api.Cluster, error) bool) {
		for _, c := range clusters {
			if !yield(c, nil) {
				return
			}
		}
	}
	if _, err := clusterTable().Print(out, items, style); err != nil {
		return err
	}
	writeTroubles(out, style, clusters, now)
	writeIgnored(out, style, st)
	return out.Flush()
}

// writeIgnored tells of files that an operator may have meant as clusters.
func writeIgnored(out *bufio.Writer, style printer.Style, st *api.Status) {
	if len(st.Ignored) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s (%s)\n", paint(style, printer.Bold, "Files of the mesh directory that are ignored"), count(len(st.Ignored), "file"))
	for _, i := range st.Ignored {
		fmt.Fprintf(out, "  %s  %s\n", printer.Clean(i.File), printer.Clean(i.Reason))
	}
	writeAdvice(out, style, "  ", "A client file is named as its cluster. Rename these, or move them out of the directory.")
}

// worstFirst sorts by how bad it is, then by name.
func worstFirst(clusters []api.Cluster) []api.Cluster {
	sorted := slices.Clone(clusters)
	slices.SortStableFunc(sorted, func(a, b api.Cluster) int {
		return cmp.Or(cmp.Compare(troubleOf(&a), troubleOf(&b)), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// writeTroubles says what is wrong, by kind, and what to do about each kind.
func writeTroubles(out *bufio.Writer, style printer.Style, clusters []api.Cluster, now time.Time) {
	byKind := make(map[trouble][]api.Cluster)
	width := 0
	for _, c := range clusters {
		if kind := troubleOf(&c); kind != noTrouble {
			byKind[kind] = append(byKind[kind], c)
			width = max(width, len(c.Name))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		fmt.Fprintf(out, "\n%s (%s)\n", paint(style, printer.Bold, kind.title()), count(len(byKind[kind]), "cluster"))
		for _, c := range byKind[kind] {
			fmt.Fprintf(out, "  %-*s  %s\n", width, printer.Clean(c.Name), printer.Clean(story(&c, now)))
		}
		writeAdvice(out, style, "  ", kind.remedy())
	}
	writeRejected(out, style, clusters)
}

// writeRejected tells of entries that were refused: the cluster may be ready
// all the same.
func writeRejected(out *bufio.Writer, style printer.Style, clusters []api.Cluster) {
	var lines []string
	for _, c := range clusters {
		if rejected(c) > 0 {
			lines = append(lines, fmt.Sprintf("%s  %s", printer.Clean(c.Name), rejectedText(c.Rejected)))
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s (%s)\n", paint(style, printer.Bold, "Entries that were refused"), count(len(lines), "cluster"))
	for _, line := range lines {
		fmt.Fprintf(out, "  %s\n", line)
	}
	writeAdvice(out, style, "  ", "The agent's log names each key and the reason; whatever writes them in that cluster has to correct them.")
}

// adviceWidth is the width of advice, unless the terminal is narrower.
const adviceWidth = 100

// writeAdvice says what to do, behind an arrow.
func writeAdvice(out *bufio.Writer, style printer.Style, indent, text string) {
	width := adviceWidth
	if style.Width > 0 {
		width = min(width, style.Width)
	}
	arrow := "→ "
	for _, line := range printer.Wrap(text, max(width-len(indent)-2, 20)) {
		fmt.Fprintf(out, "%s%s%s\n", indent, arrow, line)
		arrow = "  "
	}
}

func rejectedText(r api.ByResource[int]) string {
	var parts []string
	for _, one := range []struct {
		n    int
		name string
	}{{r.Nodes, "nodes"}, {r.Services, "services"}, {r.Identities, "identities"}, {r.IPs, "ips"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", one.name, one.n))
		}
	}
	return strings.Join(parts, ", ")
}

// story is what is wrong with a cluster, on one line.
func story(c *api.Cluster, now time.Time) string {
	text := c.Message
	if text == "" {
		text = freshness(*c)
	}
	if c.Failures > 0 && c.LastFailure != nil && !c.Connected {
		text += fmt.Sprintf(" (%s, the last %s ago)", count(c.Failures, "failure"), printer.Duration(now.Sub(*c.LastFailure)))
	}
	return text
}

// writeCluster prints everything about one cluster.
func writeCluster(w io.Writer, style printer.Style, c *api.Cluster, now time.Time) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Cluster %s (ID %d): %s\n", printer.Clean(c.Name), c.ID, paint(style, clusterColor(*c), c.State))
	if c.Message != "" {
		fmt.Fprintf(out, "  %s\n", printer.Clean(c.Message))
	}
	out.WriteString("\n")
	connected := "no"
	if c.ConnectedSince != nil {
		connected = fmt.Sprintf("since %s (%s)", c.ConnectedSince.Format(time.RFC3339), printer.Duration(now.Sub(*c.ConnectedSince)))
	}
	failures := "none"
	if c.LastFailure != nil {
		failures = fmt.Sprintf("%d, the last %s ago: %s", c.Failures, printer.Duration(now.Sub(*c.LastFailure)), c.LastError)
	}
	event := "none"
	if c.LastEvent != nil {
		event = printer.Duration(now.Sub(*c.LastEvent)) + " ago"
	}
	writeFields(out, [][2]string{
		{"Connected", connected},
		{"Endpoints", strings.Join(c.Endpoints, ", ")},
		{"Etcd cluster ID", c.EtcdClusterID},
		{"Configuration file", c.ConfigFile},
		{"Capabilities", capabilities(c.Capabilities)},
		{"Copied by a mirror", yesNo(c.Cached)},
		{"Failures", failures},
		{"Last event", event},
	})
	out.WriteString("\n")
	if _, err := resourceTable(now).Print(out, resourceRows(c), style); err != nil {
		return err
	}
	if kind := troubleOf(c); kind != noTrouble {
		out.WriteString("\n")
		writeAdvice(out, style, "", kind.remedy())
	}
	return out.Flush()
}

func writeFields(out *bufio.Writer, fields [][2]string) {
	width := 0
	for _, f := range fields {
		width = max(width, len(f[0]))
	}
	for _, f := range fields {
		fmt.Fprintf(out, "%-*s  %s\n", width, f[0], cmp.Or(printer.Clean(f[1]), "-"))
	}
}

// row is one resource of a cluster.
type row struct {
	name     string
	synced   bool
	n, wrong int
	fresh    api.Freshness
}

func resourceRows(c *api.Cluster) func(func(row, error) bool) {
	rows := []row{
		{"nodes", c.Synced.Nodes, c.Counts.Nodes, c.Rejected.Nodes, c.Freshness.Nodes},
		{"services", c.Synced.Services, c.Counts.Services, c.Rejected.Services, c.Freshness.Services},
		{"identities", c.Synced.Identities, c.Counts.Identities, c.Rejected.Identities, c.Freshness.Identities},
		{"ips", c.Synced.IPs, c.Counts.IPs, c.Rejected.IPs, c.Freshness.IPs},
	}
	return func(yield func(row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func resourceTable(now time.Time) printer.Table[row] {
	return printer.Table[row]{
		{Title: "RESOURCE", Text: func(r row) string { return r.name }},
		{Title: "SYNCED", Text: func(r row) string { return yesNo(r.synced) }, Color: func(r row) printer.Color { return wellColor(r.synced) }},
		{Title: "ENTRIES", Right: true, Text: func(r row) string { return fmt.Sprint(r.n) }},
		{Title: "REFUSED", Right: true, Text: func(r row) string { return fmt.Sprint(r.wrong) }},
		{Title: "FRESHNESS", Text: func(r row) string { return r.fresh.State }, Color: func(r row) printer.Color { return wellColor(r.fresh.State == "synced") }},
		{Title: "EQUAL TO THE REMOTE AS OF", Text: func(r row) string {
			if r.fresh.AsOf == nil {
				return "never"
			}
			return fmt.Sprintf("%s (%s ago)", r.fresh.AsOf.Format(time.RFC3339), printer.Duration(now.Sub(*r.fresh.AsOf)))
		}},
	}
}
