package api

import (
	"reflect"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/tables"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// followTable follows a table. There is one such follower for each table and
// process: one for each client would keep deleted objects alive.
func followTable[T any](db *statedb.DB, table statedb.Table[T]) (follower, error) {
	changes, err := tables.Follow(db, table)
	if err != nil {
		return nil, err
	}
	return tableFollower[T]{changes}, nil
}

type tableFollower[T any] struct{ changes *tables.Follower[T] }

func (f tableFollower[T]) drain(_ time.Time, emit func(feedEntry)) bool {
	f.changes.Drain(func(object T, deleted bool) { emit(feedEntry{object: object, deleted: deleted}) })
	return true
}

func (f tableFollower[T]) polls() bool { return false }

func (f tableFollower[T]) changed() <-chan struct{} { return f.changes.Changed() }

func (f tableFollower[T]) close() { f.changes.Close() }

// ipFollower follows the winners of the cache.
type ipFollower struct {
	ips      *ipcache.Cache
	page     []ipcache.Change
	revision uint64
}

func followIPs(ips *ipcache.Cache) *ipFollower {
	return &ipFollower{ips: ips, page: make([]ipcache.Change, 0, 1024), revision: ips.Revision()}
}

func (f *ipFollower) drain(_ time.Time, emit func(feedEntry)) bool {
	for {
		changes, held := f.ips.Since(f.revision, f.page)
		if !held {
			f.revision = f.ips.Revision()
			return false
		}
		for _, ch := range changes {
			if ch.After == nil {
				emit(feedEntry{object: ch.Before, before: ch.Before, deleted: true})
			} else { // also when only the number of its claims changed: it is shown
				emit(feedEntry{object: ch.After, before: orNil(ch.Before)})
			}
		}
		f.revision += uint64(len(changes))
		if len(changes) < cap(f.page) {
			return true
		}
	}
}

// orNil keeps a nil entry from becoming an object.
func orNil(e *ipcache.Entry) any {
	if e == nil {
		return nil
	}
	return e
}

func (f *ipFollower) polls() bool { return false }

func (f *ipFollower) changed() <-chan struct{} { return f.ips.Changed(f.revision) }

func (f *ipFollower) close() {}

// polledInterval is how often what no table holds is looked at when nobody says that
// it has changed: hundreds of clusters in which nothing happens shall cost nothing.
const polledInterval = 5 * feedInterval

// polled follows what no table holds, by comparing it with what it was. Fields
// that move all the time must not be compared.
type polled[D any] struct {
	all     func() []D
	name    func(D) string
	settled func(D) any // what is compared
	// revision grows when it is worth looking before the interval is over; nil:
	// it is not.
	revision func() uint64

	known  map[string]polledItem[D]
	seen   uint64
	looked time.Time
}

type polledItem[D any] struct {
	object  D
	settled any
}

func (f *polled[D]) drain(now time.Time, emit func(feedEntry)) bool {
	var revision uint64
	if f.revision != nil {
		revision = f.revision()
	}
	if f.known != nil && revision == f.seen && now.Sub(f.looked) < polledInterval {
		return true
	}
	f.take(now, f.all(), emit)
	f.seen = revision // read before: what changed since is looked at again
	return true
}

// take compares what there is now with what is known, which it becomes.
func (f *polled[D]) take(now time.Time, all []D, emit func(feedEntry)) {
	known := make(map[string]polledItem[D], len(all))
	for _, d := range all {
		name, item := f.name(d), polledItem[D]{d, f.settled(d)}
		known[name] = item
		if old, was := f.known[name]; !was || !reflect.DeepEqual(old.settled, item.settled) {
			emit(feedEntry{object: d})
		}
	}
	for name, old := range f.known {
		if _, is := known[name]; !is {
			emit(feedEntry{object: old.object, deleted: true})
		}
	}
	f.known, f.looked = known, now
}

func (f *polled[D]) polls() bool { return true }

func (f *polled[D]) changed() <-chan struct{} { return nil }

func (f *polled[D]) close() {}

// shown looks at what no table holds, for a reader. Whoever goes on from there is
// told of every difference to that, also when nobody had looked for a while.
func shown[D any](s *Server, resource string, look func() []D) []D {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	all, i := look(), s.indexOf(resource)
	if f, is := s.feed.followers[i].(*polled[D]); is && !s.feed.over {
		s.feed.taking(func() { f.take(s.now(), all, s.feed.from(i)) })
	}
	return all
}

// withoutDeletions is a follower of what only ends by growing old.
type withoutDeletions struct{ follower }

func (f withoutDeletions) drain(now time.Time, emit func(feedEntry)) bool {
	return f.follower.drain(now, func(e feedEntry) {
		if !e.deleted {
			emit(e)
		}
	})
}
