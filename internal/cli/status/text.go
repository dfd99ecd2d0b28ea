package status

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// noClusters is the advice for an empty mesh.
const noClusters = "No remote clusters. For each of them put an etcd client file, named like the cluster, into the mesh directory: %s"

// Maximum numbers of lines on a terminal. A longer list is cut there, unless --all is given; a pipe gets all lines.
const (
	mostRows    = 15 // of the table
	mostStories = 3  // for one kind of trouble

	mostRemedies = 4 // for one kind of trouble
)

// Page is the status for users.
type Page struct {
	*api.Status
	Now  time.Time
	all  bool // show a line for each cluster, also on a terminal
	wide bool // all details of each cluster

	worstFirst []api.Cluster
	conflicts  []api.Conflict // the first ones
	exit       []string       // the reasons for exit code 1; none for exit code 0, and where the exit code is not used
}

// Write writes the whole status for users: a summary, the clusters with problems first, and then the problems.
func Write(w io.Writer, style printer.Style, v Page) error {
	v.all, v.wide, v.worstFirst = v.all || style.Wide || style.Width == 0, style.Wide, slices.Clone(v.Clusters)
	slices.SortStableFunc(v.worstFirst, func(a, b api.Cluster) int {
		return cmp.Or(cmp.Compare(severity(&a), severity(&b)), natural.Compare(a.Name, b.Name))
	})
	p := printer.NewPage(w, style)
	v.writeSummary(p)
	v.writeImpact(p)
	v.writeConflicts(p)
	v.writeClusters(p)
	v.writeNotices(p)
	v.writeDoubts(p)
	writeExit(p, v.exit)
	return p.Flush()
}

// writeClusters writes the clusters, in modes that read clusters.
func (v *Page) writeClusters(p *printer.Page) {
	if v.operates() || v.standsBy() {
		return
	}
	p.Blank()
	if len(v.Clusters) == 0 {
		p.Text(noClusters, v.Agent.MeshDirectory)
	} else {
		v.writeTable(p)
		v.writeTroubles(p)
		v.writePolicy(p)
		v.writeRejected(p)
	}
	writeIgnored(p, v.Agent.MeshDirectory, v.Ignored)
}

func (v *Page) writeSummary(p *printer.Page) {
	a := v.Agent
	if v.Reason != "" {
		p.Text("%s: %s", printer.Painted{Text: v.State, Color: agentColor(v.State)}, v.Reason)
	}
	p.Text("mesh-agent %s on %s, cluster %s (ID %d), up %s: %s", a.Version, a.Node, a.Cluster, a.ClusterID,
		printer.Duration(v.Now.Sub(a.Started)), printer.Painted{Text: v.State, Color: agentColor(v.State)})
	if a.Leads != nil {
		p.Text("%s: %s", a.Mode, leads(*a.Leads))
	}
	if !v.standsBy() {
		v.writeCounts(p)
	}
	if v.Description != nil {
		p.Text("described by %s: %s", v.Description.Source, objectsText(v.Description))
	}
	if v.KVStore != nil {
		v.writeKVStore(p)
	}
	for _, s := range v.Serving {
		p.Text("%s on %s: %s, %d refused", s.Protocol, s.Address, printer.Count(int(s.Requests), "request"), s.Refused) //nolint:gosec // no process lives that long
	}
	if v.wide && v.TLS != nil {
		p.Text("certificates of the listeners: %s", strings.Join(clustertext.ListenerEnds(v.TLS, v.Now), "; "))
	}
}

// writeCounts writes the numbers of objects: in the view of an agent, or in the copies of a mirror. An operator has
// neither.
func (v *Page) writeCounts(p *printer.Page) {
	if v.operates() {
		return
	}
	s, well, troubles := v.Summary, len(v.Clusters), ""
	for _, clusters := range v.troubled() {
		well -= len(clusters)
		troubles += fmt.Sprintf(", %d %s", len(clusters), clusters[0].Trouble.Kind)
	}
	p.Text("%d/%d clusters ready%s", well, len(v.Clusters), troubles)
	if v.Agent.Leads != nil {
		entries := 0
		for _, c := range v.Clusters {
			entries += clustertext.Sum(c.Counts)
		}
		p.Text("%s of remote clusters; entries that are not copied yet are below", printer.Counted(entries, "entry", "entries"))
		return
	}
	p.Text("%s, %s (%d global), %s, %s, %s",
		printer.Count(s.Nodes, "node"), printer.Count(s.Services, "service"), s.GlobalServices,
		printer.Counted(s.Identities, "identity", "identities"), printer.Counted(s.IPs, "address", "addresses"), printer.Count(s.Conflicts, "conflict"))
}

// writeTable writes a line for each cluster. On a terminal, it leaves out the clusters without problems when there
// are too many lines, and writes how many.
func (v *Page) writeTable(p *printer.Page) {
	clusters, shown := v.worstFirst, v.worstFirst
	unwell := slices.IndexFunc(clusters, func(c api.Cluster) bool { return c.Trouble == nil })
	if unwell < 0 {
		unwell = len(clusters)
	}
	if !v.all && len(clusters) > mostRows {
		shown = clusters[:min(unwell, mostRows)]
	}
	if v.wide {
		printer.Rows(p, resource.ClusterTable(), shown)
	} else {
		printer.Rows(p, statusTable(), shown)
	}
	if len(shown) == len(clusters) {
		return
	}
	var more []string
	if n := unwell - len(shown); n > 0 {
		more = append(more, fmt.Sprintf("%d more that are not well", n))
	}
	if n := len(clusters) - unwell; n > 0 {
		more = append(more, fmt.Sprintf("%s ready and fresh", printer.Count(n, "cluster")))
	}
	mark := ""
	if len(shown) > 0 {
		mark = "… and "
	}
	p.Text("%s%s (--all lists them)", mark, strings.Join(more, ", "))
}

// statusTable fits into 80 columns with names of up to 32 characters.
func statusTable() printer.Table[api.Cluster] {
	return printer.Table[api.Cluster]{
		{Title: "CLUSTER", Text: func(c api.Cluster) string { return c.Name }},
		{Title: "STATE", Text: func(c api.Cluster) string { return c.State }, Color: clustertext.ClusterColor},
		{Title: "ID", Right: true, Text: func(c api.Cluster) string { return printer.Number(c.ID) }},
		{Title: "ENTRIES", Right: true, Text: func(c api.Cluster) string { return strconv.Itoa(clustertext.Sum(c.Counts)) }},
		{Title: "FRESHNESS", Text: func(c api.Cluster) string { return c.Freshness.Worst.State }, Color: func(c api.Cluster) printer.Color { return printer.WellColor(c.Fresh()) }},
		{Title: "AGE", Text: clustertext.AgeText},
	}
}

// writeIgnored writes the files that may have been meant as client files, and whether the directory is missing.
func writeIgnored(p *printer.Page, directory string, ignored []api.Ignored) {
	if len(ignored) == 0 {
		return
	}
	if i := slices.IndexFunc(ignored, func(i api.Ignored) bool { return filepath.Clean(i.File) == filepath.Clean(directory) }); i >= 0 {
		p.Section("The mesh directory cannot be read")
		p.Line("%s  %s", directory, ignored[i].Reason)
		p.Advice("The agent keeps the data of the clusters. Create the directory again, or choose another one with --clustermesh-config.")
		if ignored = slices.Delete(slices.Clone(ignored), i, i+1); len(ignored) == 0 {
			return
		}
	}
	p.Section("Files of the mesh directory that are ignored (%s)", printer.Count(len(ignored), "file"))
	for _, i := range ignored {
		p.Line("%s  %s", i.File, i.Reason)
	}
	p.Advice("A client file is named as its cluster. Rename these, or move them out of the directory.")
}

// kinds returns the kinds of trouble, the worst first, each with the heading for its clusters.
func kinds() [][2]string {
	return [][2]string{
		{"failed", "Cannot be used as configured"},
		{"connecting", "No connection yet"},
		{"lost", "Connection lost"},
		{"degraded", "Connected, but not well"},
		{"stale", "Not known to be up to date"},
		{"syncing", "First copy under way"},
		{"removing", "Being removed"},
	}
}

// severity returns the position of a cluster's trouble among the kinds. A kind of a newer agent is unknown, and comes
// first.
func severity(c *api.Cluster) int {
	if c.Trouble == nil {
		return len(kinds())
	}
	return slices.IndexFunc(kinds(), func(kind [2]string) bool { return kind[0] == c.Trouble.Kind })
}

// troubled returns the clusters with problems, grouped by the kind of their trouble.
func (v *Page) troubled() [][]api.Cluster {
	var all [][]api.Cluster
	for i, c := range v.worstFirst {
		if c.Trouble == nil {
			break
		}
		if i == 0 || c.Trouble.Kind != v.worstFirst[i-1].Trouble.Kind {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], c)
	}
	return all
}

// writeTroubles writes the problems by kind, with the remedies of each kind.
func (v *Page) writeTroubles(p *printer.Page) {
	for _, clusters := range v.troubled() {
		heading := clusters[0].Trouble.Kind
		if i := severity(&clusters[0]); i >= 0 {
			heading = kinds()[i][1]
		}
		p.Section("%s (%s)", heading, printer.Count(len(clusters), "cluster"))
		v.writeStories(p, clusters, func(c *api.Cluster) string { return clustertext.Story(c, v.Now, v.wide) })
		for _, remedy := range v.remedies(clusters) {
			p.Advice("%s", remedy)
		}
	}
}

// remedies returns the remedies for clusters with one kind of trouble, each once, and at most mostRemedies. Copies
// may wait because there is no connection to the own kvstore.
func (v *Page) remedies(clusters []api.Cluster) []string {
	if clusters[0].Trouble.Kind == "degraded" && v.Agent.Leads != nil && v.KVStore != nil && !v.KVStore.Connected {
		return []string{"The local kvstore, where the copies go, cannot be reached: see above. They continue by themselves when it answers again."}
	}
	all := clustertext.Remedies(clusters...)
	return all[:min(len(all), mostRemedies)]
}

// writeStories writes a line for each cluster, fewer on a terminal.
func (v *Page) writeStories(p *printer.Page, clusters []api.Cluster, story func(*api.Cluster) string) {
	width, rest := 0, 0
	if !v.all && len(clusters) > mostStories {
		clusters, rest = clusters[:mostStories], len(clusters)-mostStories
	}
	for _, c := range clusters {
		width = max(width, len(c.Name))
	}
	for i := range clusters {
		p.Item(fmt.Sprintf("%-*s  ", width, clusters[i].Name), "%s", story(&clusters[i]))
	}
	if rest > 0 {
		p.Line("… and %d more (--all lists them)", rest)
	}
}

func agentColor(state string) printer.Color {
	switch state {
	case api.StateReady:
		return printer.Green
	case api.StateStarting:
		return printer.Yellow
	}
	return printer.Red
}
