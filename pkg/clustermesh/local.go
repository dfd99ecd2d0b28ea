package clustermesh

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// localRescan is how often the client file of the own cluster's kvstore is
// looked at. While there is no session each attempt reads it anyway.
const localRescan = 2 * time.Second

// newLocal returns the controller of the own cluster, which reads its kvstore.
func (m *Mesh) newLocal() *remotecluster.Cluster {
	p := m.params(m.Params.Local.Name)
	p.Origin = remotecluster.OriginLocal
	p.Load = func(string) (*kvstore.Config, error) { return m.KVStore.Config() }
	m.Equip(&p)
	return remotecluster.New(p)
}

// runLocal runs the own cluster: again for each change of its client file,
// until ctx ends. What was read is kept over all of them.
func (m *Mesh) runLocal(ctx context.Context) error {
	path := m.KVStore.ConfigPath
	for ctx.Err() == nil {
		runUntil(ctx, m.local, path, func(ctx context.Context) { fileChanges(ctx, path) })
	}
	return ctx.Err()
}

// fileChanges returns when the client file is there with other contents, or
// other authorities, than when it was called; or when ctx ends. A file that is
// gone changes nothing: what is known of it counts.
func fileChanges(ctx context.Context, path string) {
	if path == "" { // there are only addresses
		<-ctx.Done()
		return
	}
	before, _ := kvstore.ContentHash(path) // zero when there is none yet
	for waiting.Sleep(ctx, localRescan) == nil {
		if now, err := kvstore.ContentHash(path); err == nil && now != before {
			return
		}
	}
}

// Local describes the own cluster as it is read from its kvstore, at this
// moment; false when there is none.
func (m *Mesh) Local() (remotecluster.Status, bool) {
	if m.local == nil {
		return remotecluster.Status{}, false
	}
	return m.local.Status(), true
}
