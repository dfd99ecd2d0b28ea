// Package fakemesh has a mesh whose state a test sets.
package fakemesh

import (
	"slices"
	"sync"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Facts are the state of a mesh.
type Facts struct {
	Clusters []remotecluster.Status
	Own      *remotecluster.Status // nil when it is not read
	NotReady map[string]string     // nil when it is ready
	Missing  map[string]string
	Ignored  []clustermesh.Ignored
}

// Mesh has the state that the test gives it. It implements the interfaces that read the state of [clustermesh.Remotes].
type Mesh struct {
	Is Facts // guarded by mu as soon as another goroutine reads it: see Set

	mu      sync.Mutex
	changes waiting.Counter
}

// Set changes the state of the mesh.
func (m *Mesh) Set(change func(*Facts)) {
	m.SetUnnoticed(change)
	m.changes.Add()
}

// SetUnnoticed is Set without a new revision.
func (m *Mesh) SetUnnoticed(change func(*Facts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.Is)
}

// SetClusters replaces the clusters.
func (m *Mesh) SetClusters(clusters ...remotecluster.Status) {
	m.Set(func(is *Facts) { is.Clusters = clusters })
}

func (m *Mesh) facts() Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Is
}

// Clusters returns the clusters that were set.
func (m *Mesh) Clusters() []remotecluster.Status { return slices.Clone(m.facts().Clusters) }

// Local returns the own cluster, if it is read.
func (m *Mesh) Local() (remotecluster.Status, bool) {
	is := m.facts()
	if is.Own == nil {
		return remotecluster.Status{}, false
	}
	return *is.Own, true
}

// Ready reports whether the mesh is ready, and otherwise the reasons.
func (m *Mesh) Ready() (bool, map[string]string) {
	is := m.facts()
	return is.NotReady == nil, is.NotReady
}

// Missing returns the clusters that were not synced when the mesh became ready.
func (m *Mesh) Missing() map[string]string { return m.facts().Missing }

// Ignored returns the ignored files.
func (m *Mesh) Ignored() []clustermesh.Ignored { return slices.Clone(m.facts().Ignored) }

// Revision is the number of changes of the mesh.
func (m *Mesh) Revision() uint64 { return m.changes.Count() }

// Changed returns a channel that is closed at the next change of the mesh.
func (m *Mesh) Changed(known uint64) <-chan struct{} { return m.changes.Changed(known) }

// Announced returns the clusters that are in the mesh directory and not yet in the mesh: none.
func (m *Mesh) Announced() []remotecluster.Status { return nil }

// Find finds no key.
func (m *Mesh) Find(string, wire.Resource, string) (store.Found, bool) {
	return store.Found{}, false
}
