package checks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// The changes to a cluster of the running agent.
const (
	Add    = "add"
	Modify = "change"
	Remove = "remove"
)

// Diff is what a directory would change in a running agent.
type Diff struct {
	Agent     string   `json:"agent"`     // the own cluster of the agent
	Directory string   `json:"directory"` // the agent's present mesh directory
	Changes   []Change `json:"changes"`   // sorted by cluster
	Unchanged int      `json:"unchanged"` // clusters
	// Vanish are the entries that would be withdrawn, of all clusters.
	Vanish api.ByResource[int] `json:"vanish"`
}

// Change is the change to one cluster.
type Change struct {
	Cluster string   `json:"cluster"`
	Change  string   `json:"change"`         // Add, Modify or Remove
	What    []string `json:"what,omitempty"` // the changed parts, for people
	// Vanish are the entries of the cluster that would be withdrawn; when its ID
	// changes they are copied again. Nil when nothing is.
	Vanish *api.ByResource[int] `json:"vanish,omitempty"`
}

// Compare reports the changes that the directory would cause in an agent with this status and this key of its
// configHash. Without the key, contents cannot be compared, which is a finding. Cluster IDs are compared if Connect
// has read them before.
func (r *Report) Compare(st *api.Status, key string) {
	if key == "" {
		r.add(codes.ContentsNotCompared, "only names, endpoints and IDs of the clusters are compared with the running agent, not the contents of the client files")
	}
	d := &Diff{Agent: st.Agent.Cluster, Directory: st.Agent.MeshDirectory, Changes: []Change{}}
	if d.Agent != r.OwnCluster {
		found := codes.AgentOfOtherNames.Found(fmt.Sprintf("the running agent is of the cluster %q, and the check is for %q", d.Agent, r.OwnCluster), "")
		found.Remedy = codes.Subject{Clusters: []string{d.Agent}, ID: st.Agent.ClusterID}.Fill(found.Remedy)
		r.Findings = append(r.Findings, found)
	}
	running := make(map[string]api.Cluster)
	for _, c := range st.Clusters {
		if c.State != "removing" {
			running[c.Name] = c
		}
	}
	for i := range r.Files {
		f := &r.Files[i]
		if f.Cluster == "" {
			continue
		}
		c, there := running[f.Cluster]
		delete(running, f.Cluster)
		if change := f.compared(c, there, key); change != nil {
			d.Changes = append(d.Changes, *change)
		} else {
			d.Unchanged++
		}
	}
	for name, c := range running {
		d.Changes = append(d.Changes, Change{Cluster: name, Change: Remove, Vanish: &c.Counts})
		r.add(codes.WouldRemove, fmt.Sprintf("%s has no client file in %s and would be removed, with %s", name, r.Directory, Entries(&c.Counts)))
	}
	slices.SortFunc(d.Changes, func(a, b Change) int { return natural.Compare(a.Cluster, b.Cluster) })
	slices.SortFunc(r.Findings, func(a, b codes.Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), natural.Compare(a.Message, b.Message))
	})
	d.total()
	r.Diff = d
	r.count()
}

// compared returns the change to the cluster of a file, which the agent may have; nil when nothing would change.
func (f *File) compared(c api.Cluster, there bool, key string) *Change {
	if !there {
		f.add(codes.WouldAdd, "the running agent does not have "+f.Cluster, "")
		return &Change{Cluster: f.Cluster, Change: Add}
	}
	change := Change{Cluster: f.Cluster, Change: Modify}
	urls := printer.Texts(f.Endpoints, func(e Endpoint) string { return e.URL })
	readable := f.contents != ""
	known := key != "" && c.ConfigHash != "" || !readable // an older agent says nothing of contents
	switch {
	case known && c.ConfigHash == clientfile.KeyedHash(key, f.contents):
	case !readable:
		change.What = append(change.What, "its client file could no longer be read")
	case !slices.Equal(urls, c.Endpoints):
		change.What = append(change.What, fmt.Sprintf("endpoints: %s instead of %s", orNone(urls), orNone(c.Endpoints)))
	case known:
		change.What = append(change.What, "contents of the client file, or of the authorities, certificate or key that it names")
	}
	if f.ClusterID != 0 && c.ID != 0 && f.ClusterID != c.ID {
		what := fmt.Sprintf("cluster ID %d instead of %d", f.ClusterID, c.ID)
		change.What, change.Vanish = append(change.What, what), &c.Counts
		f.add(codes.WouldChangeID, fmt.Sprintf("%s: %s would be withdrawn and copied again", what, Entries(&c.Counts)), "")
	}
	if len(change.What) == 0 {
		return nil
	}
	f.add(codes.WouldChange, "it would change: "+strings.Join(change.What, "; "), "")
	return &change
}

func orNone(urls []string) string { return cmp.Or(strings.Join(urls, ", "), "none") }

func (d *Diff) total() {
	for _, c := range d.Changes {
		if c.Vanish != nil {
			for r, n := range c.Vanish.All() {
				*d.Vanish.Of(r) += *n
			}
		}
	}
}

// Entries writes counts for people, without zero counts.
func Entries(counts *api.ByResource[int]) string {
	var texts []string
	for r, n := range counts.All() {
		switch *n {
		case 0:
		case 1:
			texts = append(texts, "1 "+r.Describe().One)
		default:
			texts = append(texts, fmt.Sprintf("%d %s", *n, r.Describe().Many))
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "no entries")
}
