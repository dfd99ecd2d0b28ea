package clustermesh

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// localRescan is how often the client file of the own cluster's kvstore is
// looked at. While there is no session each attempt reads it anyway.
const localRescan = 2 * time.Second

// newLocal returns the controller of the own cluster, which reads its kvstore.
func (m *Mesh) newLocal() *remotecluster.Cluster {
	p := m.params(m.Params.Local.Name)
	p.Origin, p.File = remotecluster.OriginLocal, m.KVStore.ConfigPath
	p.Load = func(string) (*clientfile.Config, error) {
		m.loaded.note(m.KVStore.ConfigPath)
		return m.KVStore.Config()
	}
	return m.newController(p)
}

// runLocal runs the own cluster: again for each change of its client file,
// until ctx ends. What was read is kept over all of them.
func (m *Mesh) runLocal(ctx context.Context) error {
	path := m.KVStore.ConfigPath
	for ctx.Err() == nil {
		runUntil(ctx, m.local, path, func(ctx context.Context) { m.loaded.outdated(ctx, path) })
	}
	return ctx.Err()
}

// loadedFile is what a client file held when it was last loaded for a session.
type loadedFile struct {
	hash atomic.Value // a clientfile.ContentHash; zero when there was no file
}

// note notes what the file holds. It is called before the file is loaded: what changes in
// between counts as a change.
func (f *loadedFile) note(path string) {
	hash, _ := clientfile.ContentHash(path) // zero when there is none
	f.hash.Store(hash)
}

// outdated returns when the file is there with other contents, or other authorities, than were
// loaded last; or when ctx ends. A file that is gone changes nothing: what is known of it counts.
func (f *loadedFile) outdated(ctx context.Context, path string) {
	if path == "" { // there are only addresses
		<-ctx.Done()
		return
	}
	for waiting.Sleep(ctx, localRescan) == nil {
		if now, err := clientfile.ContentHash(path); err == nil && f.hash.Load() != any(now) {
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
