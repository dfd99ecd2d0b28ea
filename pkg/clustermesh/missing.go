package clustermesh

import "maps"

// Missing says of the clusters without which the mesh became ready, as the sync
// timeout had passed, what is not synced yet, as the reasons of [Mesh.Ready]. It is
// empty before the mesh is ready, and each cluster leaves it for good once it is
// synced or its file is gone.
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
