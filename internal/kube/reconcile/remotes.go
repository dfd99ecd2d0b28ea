package reconcile

import (
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Remote is a cluster that has a client file.
type Remote struct {
	Name string
	Read bool // what follows from it was listed since the start
}

// ReadyOf returns a function that reports whether a mesh is ready.
func ReadyOf(m *clustermesh.Remotes) func() bool {
	return func() bool { ready, _ := m.Ready(); return ready }
}

// RemotesOf returns a function for the remote clusters of a mesh. A cluster that is being removed counts as read at once.
func RemotesOf(m *clustermesh.Remotes, read func(remotecluster.Status) bool) func() []Remote {
	return func() (all []Remote) {
		for _, c := range m.Clusters() {
			all = append(all, Remote{Name: c.Name, Read: read(c) || c.State == remotecluster.Removing})
		}
		return all
	}
}

// ServicesRead reports whether the services of a cluster were read, in both formats.
func ServicesRead(c remotecluster.Status) bool { return len(clustermesh.Unsynced(c)) == 0 }

// ExportsRead reports whether the exports of a cluster were read. Exports are optional: a cluster may be synced
// without them. A cluster that exports nothing counts as read.
func ExportsRead(c remotecluster.Status) bool { return c.Families[wire.ServiceExports].Synced }
