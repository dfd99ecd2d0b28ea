package clustermesh

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// localRescan is the time between two checks of the client file of the own cluster's
// kvstore. While there is no session, each attempt reads the file anyway.
const localRescan = 2 * time.Second

// newLocal returns the controller of the own cluster, which reads its kvstore.
func (m *Mesh) newLocal() *remotecluster.Cluster {
	p := m.params(m.Params.Local.Name)
	p.Origin, p.File = remotecluster.OriginLocal, m.Own.Path
	p.Load = func(string) (*clientfile.Config, error) {
		m.loaded.note(m.Own.Path)
		return m.Own.Load()
	}
	return m.newController(p)
}

// runLocal runs the own cluster, again for each change of its client file,
// until ctx ends. The data is kept over all these changes.
func (m *Mesh) runLocal(ctx context.Context) error {
	path := m.Own.Path
	for ctx.Err() == nil {
		runUntil(ctx, m.local, path, func(ctx context.Context) { m.loaded.outdated(ctx, path) })
	}
	return ctx.Err()
}

// loadedFile holds the hash of a client file's contents when it was last loaded for a session.
type loadedFile struct {
	hash atomic.Value // a clientfile.ContentHash; zero when there was no file
}

// note stores the hash of the present contents. It is called before the file is loaded: so a
// change between the two counts as a change.
func (f *loadedFile) note(path string) {
	hash, _ := clientfile.ContentHash(path) // zero when there is none
	f.hash.Store(hash)
}

// outdated returns when the file has other contents, or other authorities, than those that were
// loaded last; or when ctx ends. A missing file is not a change: the loaded contents stay in use.
func (f *loadedFile) outdated(ctx context.Context, path string) {
	if path == "" { // no client file: the options have only addresses
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
