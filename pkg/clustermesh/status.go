package clustermesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Clusters describes every cluster at this moment, sorted by name.
func (m *Remotes) Clusters() []remotecluster.Status {
	m.mu.Lock()
	clusters := make(map[*remotecluster.Cluster]member, len(m.members))
	for _, mb := range m.members {
		clusters[mb.cluster] = *mb
	}
	m.mu.Unlock()
	all := make([]remotecluster.Status, 0, len(clusters))
	for c, mb := range clusters {
		st := c.Status()
		if st.LastLoss == "" && mb.regrant {
			st.LastLoss = "the claim policy file has changed: the agent checks all entries of the cluster again"
		}
		if mb.wanted && st.State == remotecluster.Removing {
			st.Message = "its file was gone and is back; it is taken up again when the entries of before are withdrawn"
		}
		st.Notices = append(brokenFile(mb), st.Notices...)
		st.Forecast = m.policy.forecast(st.Name)
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b remotecluster.Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// brokenFile returns the notice for a client file that still exists but is no longer a valid client file.
func brokenFile(mb member) []remotecluster.Notice {
	if mb.broken.Why == "" {
		return nil
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return []remotecluster.Notice{{Code: codes.ClientFileBroken, Message: fmt.Sprintf("since %s, %s cannot be used (%s): the present connection continues, a new one fails, and the agent withdraws the cluster at %s",
		at(mb.broken.Since), mb.file.Path, mb.broken.Why, at(mb.broken.Until))}}
}

// Find returns the entry of one key of a cluster, the own one included, by its
// name below the resource's prefix; false if the key is unknown.
func (m *Remotes) Find(cluster string, r wire.Resource, name string) (store.Found, bool) {
	m.mu.Lock()
	mb := m.members[cluster]
	m.mu.Unlock()
	switch {
	case mb != nil:
		return mb.cluster.Find(r, name)
	case m.local != nil && cluster == m.Params.Local.Name:
		return m.local.Find(r, name)
	}
	return store.Found{}, false
}

// WithAnnounced returns the known clusters and those of now, which replace known clusters of the
// same name: a change of the directory shows immediately. The result is in natural order of the names.
func WithAnnounced(known, now []remotecluster.Status) []remotecluster.Status {
	all := slices.DeleteFunc(slices.Clone(known), func(c remotecluster.Status) bool {
		return slices.ContainsFunc(now, func(n remotecluster.Status) bool { return n.Name == c.Name })
	})
	all = append(all, now...)
	slices.SortStableFunc(all, func(a, b remotecluster.Status) int { return natural.Compare(a.Name, b.Name) })
	return all
}

// Announced describes the clusters whose client files in the directory at this moment
// differ from those that the controllers use: new files, and changed ones. It reads the
// directory; when this fails, it returns none.
func (m *Remotes) Announced() []remotecluster.Status {
	l, err := scan(m.Directory, m.Params.Local.Name)
	if err != nil {
		return nil
	}
	var all []remotecluster.Status
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.Files)) {
		file, mb := l.Files[name], m.members[name]
		text := "its client file was just put there, and is about to be read"
		switch {
		case mb != nil && mb.wanted && (file.unreadable || mb.file == file):
			continue
		case mb != nil:
			text = "its client file was just changed, and is about to be read"
		}
		all = append(all, remotecluster.Status{
			Name: name, ConfigFile: file.Path, State: remotecluster.Connecting, Code: codes.NotConnectedYet, Message: text,
		})
	}
	return all
}

// Sessions returns the numbers of connections, of clusters that use them, and of all
// connections that were ever opened.
func (m *Remotes) Sessions() (open, users, opened int) { return m.pool.counts() }

// Ignored lists the entries of the directory that look like client files but
// cannot be used, with the reasons.
func (m *Remotes) Ignored() []Ignored {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ignored)
}

// Revision increases with every change of a cluster's state, but not when only counts or freshness change.
func (m *Remotes) Revision() uint64 { return m.Changes.Count() }

// Changed returns a channel that is closed once Revision exceeds the known one.
func (m *Remotes) Changed(known uint64) <-chan struct{} { return m.Changes.Changed(known) }

// Ready reports whether the view may be used: every cluster was synced once, or the sync
// timeout has passed since the start. It is false until the mesh directory was read once:
// otherwise an empty view would look like that of a mesh without clusters. Once true it stays
// true. A description of the own cluster counts as a cluster. reasons has, by cluster, what
// the mesh waits for.
func (m *Remotes) Ready() (ok bool, reasons map[string]string) {
	if m.ready.Load() {
		return true, nil
	}
	if why := m.Unread(); why != "" {
		return false, map[string]string{Directory: why}
	}
	reasons = m.unready()
	if len(reasons) > 0 && time.Since(m.started) < m.SyncTimeout {
		return false, reasons
	}
	if !m.ready.Swap(true) && len(reasons) > 0 {
		m.readyWithout(reasons)
		m.Log.Warn("Ready without some clusters: they did not answer within the sync timeout",
			"clusters", slices.Sorted(maps.Keys(reasons)), "timeout", m.SyncTimeout)
	}
	return true, nil
}

// Directory is the key of [Remotes.Unread] in the reasons of [Remotes.Ready]. It is not a
// valid cluster name.
const Directory = "mesh directory"

// Unread returns why the mesh directory was not read yet; empty once it was read.
func (m *Remotes) Unread() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scanned {
		return ""
	}
	text := m.Params.Directory + " was not read yet"
	for _, i := range m.ignored {
		if i.Directory {
			text += ": " + i.Reason
		}
	}
	return text
}

func (m *Remotes) unready() map[string]string {
	reasons := make(map[string]string)
	note := func(subject string, c remotecluster.Status) {
		if missing := Unsynced(c); len(missing) > 0 {
			reasons[subject] = fmt.Sprintf("not synced: %s: %s", strings.Join(missing, ", "), c.Message)
		}
	}
	for _, c := range m.Clusters() {
		note(c.Name, c)
	}
	if c, has := m.Local(); has {
		note("local kvstore", c)
	} else if m.Described != nil {
		if s := m.Described(wire.Services); !s.Synced {
			reasons["own cluster"] = "its description was not read yet"
			if s.Err != nil {
				reasons["own cluster"] += ": " + s.Err.Error()
			}
		}
	}
	return reasons
}

// Unsynced lists, sorted, the resources that the cluster needs and that have not been listed completely since the
// start.
func Unsynced(c remotecluster.Status) (missing []string) {
	for r, s := range c.Families {
		if !s.Synced && !s.Late {
			missing = append(missing, string(r))
		}
	}
	slices.Sort(missing)
	return missing
}

// Missing returns the clusters that were not synced when the sync timeout passed and the mesh became
// ready, and still are not, with reasons as in [Remotes.Ready]. It is empty before the mesh is ready. A
// cluster is removed from it for good once it is synced or its file is removed.
func (m *Remotes) Missing() map[string]string {
	if ok, _ := m.Ready(); !ok {
		return nil
	}
	m.mu.Lock()
	without := maps.Clone(m.unsynced)
	m.mu.Unlock()
	if len(without) == 0 {
		return nil
	}
	reasons := m.unready()
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(reasons, func(subject, _ string) bool { return !m.unsynced[subject] })
	for subject := range without {
		if _, still := reasons[subject]; !still {
			delete(m.unsynced, subject)
		}
	}
	return reasons
}

// readyWithout stores the subjects that were not synced when the sync timeout had passed.
func (m *Remotes) readyWithout(reasons map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unsynced = make(map[string]bool, len(reasons))
	for subject := range reasons {
		m.unsynced[subject] = true
	}
}
