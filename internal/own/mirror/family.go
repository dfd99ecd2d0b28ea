package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/guard"
	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// family copies one key family of a remote cluster: its watch of the remote feeds its sync of the cache. Neither keeps
// a value. A value that has to be written again is read from the remote again.
type family struct {
	resource wire.Resource
	watch    *store.Watch[present]
	sync     *syncstore.Sync
	log      *slog.Logger
	stopped  func() verdict // why nothing is put
	values   [][]byte       // of the changes of the batch at hand, in their order; the watch's goroutine owns it

	running  sync.Mutex  // held by Run
	detached atomic.Bool // nothing reaches the sync from now on

	mu     sync.Mutex
	again  map[string]struct{} // guarded by mu; names whose values are asked for again
	asked  waiting.Signal      // again is not empty
	copied time.Time           // guarded by mu; the time as of which the copy is known to equal the original
}

var _ remotecluster.Family = (*family)(nil)

// present is all that is kept of a value.
type present struct{}

func (c *copyOf) newFamily(r wire.Resource, allowed *syncstore.Allowance) *family {
	f := &family{
		resource: r, log: c.log, stopped: c.stopped, again: make(map[string]struct{}), asked: waiting.NewSignal(),
	}
	f.sync = syncstore.New(syncstore.Params{
		Prefix: r.Prefix(c.name, true), Again: f.askAgain, Allowance: allowed, Outbox: c.outbox, Cluster: c.name, Log: c.log,
	})
	f.watch = store.NewWatch(store.Kind[present]{
		Resource: r, Decode: f.decode, Apply: f.apply, Listed: f.sync.Complete, Metrics: c.Metrics,
	}, c.log)
	return f
}

// decode keeps the value until its change is applied, which follows in this
// goroutine: each value that is accepted is one change. Only names are refused.
func (f *family) decode(wire.Expect) store.Decode[present] {
	return func(name string, value []byte) (*present, error) {
		if err := checkName(name); err != nil {
			return nil, err
		}
		f.values = append(f.values, bytes.Clone(value))
		return new(present), nil
	}
}

func (f *family) apply(changes []store.Change[present]) {
	values := f.values
	f.values = nil
	if f.detached.Load() {
		return
	}
	for _, ch := range changes {
		if ch.New == nil {
			f.sync.Delete(ch.Name)
			continue
		}
		f.sync.Put(ch.Name, values[0])
		values = values[1:]
	}
}

// Resource implements [remotecluster.Family].
func (f *family) Resource() wire.Resource { return f.resource }

// Run implements [remotecluster.Family].
func (f *family) Run(ctx context.Context, s store.Session) error {
	f.running.Lock()
	defer f.running.Unlock()
	f.values = nil // of a batch that ended in a panic
	g, ctx := errgroup.WithContext(ctx)
	s.Room = f.sync.WaitRoom // no more is read while much of it is still to be written
	g.Go(guard.Func(func() error { return f.watch.Run(ctx, s) }))
	g.Go(guard.Func(func() error { return f.readAgain(ctx, s) }))
	return g.Wait()
}

// withhold empties the copy, unless there is contact again.
func (f *family) withhold() {
	if f.running.TryLock() {
		defer f.running.Unlock()
		f.watch.Drain()
	}
}

// Observe implements [remotecluster.Family].
func (f *family) Observe(p kvstore.Probe) { f.watch.Observe(p) }

// Find implements [remotecluster.Family].
func (f *family) Find(name string) (store.Found, bool) { return f.watch.Find(name) }

// Drain implements [remotecluster.Family]: the remote no longer exports the family, so its copy is empty, and complete.
func (f *family) Drain() {
	f.watch.Drain()
	if !f.detached.Load() {
		f.sync.Complete()
	}
}

// Status implements [remotecluster.Family]. A family is synced when it has been copied completely, and as fresh as its
// copy: both kvstores must have been asked, since the own one can lose the copy, for example with its leases.
func (f *family) Status() store.Status {
	st, written := f.watch.Status(), f.sync.Status()
	f.mu.Lock()
	defer f.mu.Unlock()
	if written.Pending == 0 && written.Err == "" {
		f.copied = st.AsOf
		if written.AsOf.Before(st.AsOf) {
			f.copied = written.AsOf
		}
	}
	st.AsOf = f.copied
	st.Synced = st.Synced && written.Synced
	st.Pending = written.Pending
	if written.Stopped {
		st.Err = fmt.Errorf("%w: %s", syncstore.ErrStopped, f.stopped().why)
	} else if st.Err == nil && written.Err != "" {
		st.Err = errors.New("writing the copy to our own kvstore: " + written.Err)
	}
	return st
}

// askAgain takes the names of values that are needed again.
func (f *family) askAgain(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.again[name] = struct{}{}
	}
	f.asked.Notify()
}

// fewNames is how many values are read one by one rather than with all others.
const fewNames = 200

// readAgain reads the requested values from the remote. A key that no longer exists comes as a deletion. A value that
// cannot be read is tried again after a pause: this is no reason to end the session, whose failure its watch detects.
func (f *family) readAgain(ctx context.Context, s store.Session) error {
	pause := waiting.Pauses(50*time.Millisecond, 5*time.Second)
	for {
		select {
		case <-f.asked:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mu.Lock()
		names := f.again
		f.again = make(map[string]struct{})
		f.mu.Unlock()
		err := f.read(ctx, s, names)
		if err == nil {
			pause.Reset()
			continue
		}
		f.askAgain(slices.Collect(maps.Keys(names))) // of the next session, if this one is over
		if ctx.Err() == nil {
			f.log.Debug("Cannot read values again; retrying", "prefix", s.Prefix, "values", len(names), "error", err)
		}
		if err := waiting.Sleep(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

// read gives the sync the values of the names, and takes them off the map.
func (f *family) read(ctx context.Context, s store.Session, names map[string]struct{}) error {
	if len(names) > fewNames {
		return s.List(ctx, func(p kvstore.Page) error {
			for _, kv := range p.Items {
				if name, below := bytes.CutPrefix(kv.Key, []byte(s.Prefix)); below {
					f.give(names, string(name), kv.Value)
				}
			}
			return nil
		})
	}
	for name := range names {
		if err := f.sync.WaitRoom(ctx); err != nil {
			return err
		}
		kv, _, err := s.Client.Get(ctx, s.Prefix+name)
		if err != nil {
			return err
		}
		if kv != nil {
			f.give(names, name, kv.Value)
		}
		delete(names, name) // a key that no longer exists comes as a deletion
	}
	return nil
}

// give hands over a value that was asked for.
func (f *family) give(names map[string]struct{}, name string, value []byte) {
	if _, asked := names[name]; !asked {
		return
	}
	delete(names, name)
	f.sync.Supply(name, value) // a newer value is about to come from the watch
}
