package clustermesh

import "context"

// followGrants begins the sessions anew of those clusters that may claim something
// else than before, so that everything they say is judged again, until ctx ends.
func (m *Mesh) followGrants(ctx context.Context) error {
	before, changed := m.Granted.Get()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		now, next := m.Granted.Get()
		m.mu.Lock()
		for name, mb := range m.members {
			if !now.Equal(before, name) || now.Pinned(mb.cluster.Status().ID) != before.Pinned(mb.cluster.Status().ID) {
				mb.recheck, mb.regrant = true, true
				mb.signal()
			}
		}
		m.mu.Unlock()
		before, changed = now, next
	}
}

// rechecks tells whether everything of the cluster is to be judged again, once.
func (m *Mesh) rechecks(mb *member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	yes := mb.recheck
	mb.recheck, mb.regrant = false, yes
	return yes
}
