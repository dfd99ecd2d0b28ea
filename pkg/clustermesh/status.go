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
func (m *Mesh) Clusters() []remotecluster.Status {
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
		st.Outlook = m.policy.outlook(st.Name)
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b remotecluster.Status) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// brokenFile is what is to be said of a client file that is there and is none any more.
func brokenFile(mb member) []remotecluster.Notice {
	if mb.broken.Why == "" {
		return nil
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return []remotecluster.Notice{{Code: codes.ClientFileBroken, Message: fmt.Sprintf("since %s, %s cannot be used (%s): the present connection continues, a new one fails, and the agent withdraws the cluster at %s",
		at(mb.broken.Since), mb.file.Path, mb.broken.Why, at(mb.broken.Until))}}
}

// Find tells what is known of one key of a cluster, the own one included, by its
// name below the resource's prefix; false for nothing.
func (m *Mesh) Find(cluster string, r wire.Resource, name string) (store.Found, bool) {
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

// WithAnnounced puts clusters that the directory has now in the place of what is known
// of them: a change of the directory shows immediately. They are in their natural order.
func WithAnnounced(known, now []remotecluster.Status) []remotecluster.Status {
	all := slices.DeleteFunc(slices.Clone(known), func(c remotecluster.Status) bool {
		return slices.ContainsFunc(now, func(n remotecluster.Status) bool { return n.Name == c.Name })
	})
	all = append(all, now...)
	slices.SortStableFunc(all, func(a, b remotecluster.Status) int { return natural.Compare(a.Name, b.Name) })
	return all
}

// Announced describes the clusters whose client files are in the directory at this
// moment otherwise than the controllers know: new ones, and those whose file was
// changed. It reads the directory; when that cannot be read, there are none.
func (m *Mesh) Announced() []remotecluster.Status {
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

// Sessions counts the connections, the clusters that use them, and all the
// connections that were ever opened.
func (m *Mesh) Sessions() (open, users, opened int) { return m.pool.counts() }

// Ignored lists the entries of the directory that look like client files but
// cannot be used, and why.
func (m *Mesh) Ignored() []Ignored {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ignored)
}

// Revision grows with every change of a cluster's state; counts and freshness move without it.
func (m *Mesh) Revision() uint64 { return m.revision.Load() }

// Ready reports whether the view may be used: every cluster was synced once, or the sync
// timeout has passed since the start, but never before the mesh directory was read once:
// an empty view would pass for that of a mesh without clusters. Once true it stays true. A description of the own cluster
// counts as a cluster.
// The reasons say by cluster what is waited for.
func (m *Mesh) Ready() (ok bool, reasons map[string]string) {
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

// Directory is the subject of [Mesh.Unread] among the reasons of [Mesh.Ready]. It is
// no name of a cluster.
const Directory = "mesh directory"

// Unread says why nothing is known of the mesh directory yet; empty once it was read.
func (m *Mesh) Unread() string {
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

func (m *Mesh) unready() map[string]string {
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

// Unsynced lists the resources of a cluster that have not been listed completely since the start and are
// needed, sorted.
func Unsynced(c remotecluster.Status) (missing []string) {
	for r, s := range c.Sources {
		if !s.Synced && !s.Late {
			missing = append(missing, string(r))
		}
	}
	slices.Sort(missing)
	return missing
}

// Missing says of the clusters without which the mesh became ready, as the sync timeout had passed,
// what is not synced yet, as the reasons of [Mesh.Ready]. It is empty before the mesh is ready, and
// each cluster leaves it for good once it is synced or its file is gone.
func (m *Mesh) Missing() map[string]string {
	if ok, _ := m.Ready(); !ok {
		return nil
	}
	m.mu.Lock()
	without := maps.Clone(m.without)
	m.mu.Unlock()
	if len(without) == 0 {
		return nil
	}
	reasons := m.unready()
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(reasons, func(subject, _ string) bool { return !m.without[subject] })
	for subject := range without {
		if _, still := reasons[subject]; !still {
			delete(m.without, subject)
		}
	}
	return reasons
}

// readyWithout keeps what was not there when the sync timeout had passed.
func (m *Mesh) readyWithout(reasons map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.without = make(map[string]bool, len(reasons))
	for subject := range reasons {
		m.without[subject] = true
	}
}
