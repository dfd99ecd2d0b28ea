package clustermesh

import (
	"context"
	"sync/atomic"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// newLocal returns the controller of the own cluster, which reads its kvstore.
func (m *Remotes) newLocal() *remotecluster.Cluster {
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
func (m *Remotes) runLocal(ctx context.Context) error {
	path := m.Own.Path
	for ctx.Err() == nil {
		m.loaded.hash.Store(nil)
		runUntil(ctx, m.local, path, func(ctx context.Context) { m.loaded.outdated(ctx, path) })
	}
	return ctx.Err()
}

// loadedFile holds the hash of a client file's contents when it was last loaded for a session.
type loadedFile struct {
	hash atomic.Pointer[[32]byte] // a clientfile.ContentHash; zero when there was no file, nil before the first load
}

// note stores the hash of the present contents. It is called before the file is loaded: so a
// change between the two counts as a change.
func (f *loadedFile) note(path string) {
	hash, _ := clientfile.ContentHash(path) // zero when there is none
	f.hash.Store(&hash)
}

// outdated returns when the file has other contents, or other authorities, than those that were
// loaded last; or when ctx ends. A missing file is not a change: the loaded contents stay in use.
func (f *loadedFile) outdated(ctx context.Context, path string) {
	if path == "" { // no client file: the options have only addresses
		<-ctx.Done()
		return
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var latest [32]byte // the contents now, which a session may have loaded before they count
	_ = dirwatch.FollowFile(ctx, func() (hash [32]byte, err error) {
		latest, err = clientfile.ContentHash(path)
		return latest, err
	}, func(counts [32]byte, err error) {
		if loaded := f.hash.Load(); err == nil && loaded != nil && counts == latest && *loaded != latest {
			end()
		}
	})
}

// Local describes the own cluster as it is read from its kvstore, at this
// moment; false when there is none.
func (m *Remotes) Local() (remotecluster.Status, bool) {
	if m.local == nil {
		return remotecluster.Status{}, false
	}
	return m.local.Status(), true
}
