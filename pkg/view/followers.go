package view

import (
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

type tableFollower struct {
	table   tables.Shown
	changes tables.ShownFollower
	known   statedb.ReadTxn // of the last look, to read the previous versions of objects; nil before the first one
}

func (f *tableFollower) drain(at round, emit emitting) bool {
	f.changes.DrainTo(at.txn, func(object any, deleted bool) {
		e := feedEntry{object: object, deleted: deleted}
		var now any // nil for none
		if f.known != nil {
			e.before = f.table.Find(f.known, object)
		}
		if !deleted {
			now = object
		}
		if e.before != nil || !deleted { // an object that was created and deleted between two looks is left out
			e.cost = costOf(f.table.Added(e.before, now))
			emit(e, f.table.Added(now, e.before))
		}
	})
	f.known = at.txn
	return true
}

// costOf converts a number of bytes to the type of an entry's cost.
func costOf(bytes int) uint32 { return uint32(min(max(bytes, 0), math.MaxUint32)) }

// match compares pointers: objects of tables do not change.
func (f *tableFollower) match(object any, _, in *Snapshot) (any, bool) {
	found := f.table.Find(in.Txn, object)
	return found, found == object
}

func (f *tableFollower) polls() bool { return false }

func (f *tableFollower) changed() <-chan struct{} { return f.changes.Changed() }

func (f *tableFollower) close() { f.changes.Close() }

// ipFollower follows the winners of the cache.
type ipFollower struct {
	ips      *ipcache.Cache
	page     []ipcache.Change
	revision uint64
}

func (f *ipFollower) drain(at round, emit emitting) bool {
	end := f.ips.Revision()
	if at.ips != nil {
		end = at.ips.Revision()
	}
	for f.revision < end {
		changes, held := f.ips.Since(f.revision, f.page)
		if !held {
			f.revision = end
			return false
		}
		changes = changes[:min(uint64(len(changes)), end-f.revision)]
		for _, ch := range changes {
			cost := ch.Replaced()
			switch {
			case ch.After == nil:
				emit(feedEntry{object: ch.Before, before: ch.Before, deleted: true, cost: costOf(cost)}, 0)
			case ch.Before == nil:
				emit(feedEntry{object: ch.After}, ch.After.Cost())
			default: // also when only the number of its claims changed: it is shown. About the same size
				emit(feedEntry{object: ch.After, before: ch.Before, cost: costOf(cost)}, cost)
			}
		}
		f.revision += uint64(len(changes))
	}
	return true
}

// orNil returns a nil entry as a nil interface.
func orNil(e *ipcache.Entry) any {
	if e == nil {
		return nil
	}
	return e
}

func (f *ipFollower) match(object any, from, in *Snapshot) (any, bool) {
	e := object.(*ipcache.Entry)
	found := in.IPs.At(e)
	return orNil(found), found == e && from.IPs.Claims(e) == in.IPs.Claims(e)
}

func (f *ipFollower) polls() bool { return false }

func (f *ipFollower) changed() <-chan struct{} { return f.ips.Changed(f.revision) }

func (f *ipFollower) close() {}

// polledInterval is how often data that is in no table is compared when there is no signal that it changed: hundreds of
// clusters without changes must cost almost nothing.
const polledInterval = 5 * feedInterval

// polled follows data that is in no table, by comparing it with its previous version. Fields that change all the time
// must not be compared.
type polled[D any] struct {
	kind   Kind
	all    func() []D
	name   func(D) string
	steady func(D) any // the part that is compared
	cost   func(D) int // about how many bytes
	// revision grows when an earlier comparison is worthwhile, before the interval is over; nil: there is no such
	// signal.
	revision func() uint64

	latest []D // the objects of the last look
	known  map[string]polledItem[D]
	seen   uint64
	looked time.Time
}

type polledItem[D any] struct {
	object D
	steady any
}

func (f *polled[D]) drain(at round, emit emitting) bool {
	var revision uint64
	if f.revision != nil {
		revision = f.revision()
	}
	if f.known != nil && revision == f.seen && at.now.Sub(f.looked) < polledInterval && !at.sure {
		return true
	}
	f.take(at.now, f.all(), emit)
	f.seen = revision // read before the objects: later changes are looked at again
	return true
}

// take compares the present objects with the known ones, and replaces these.
func (f *polled[D]) take(now time.Time, all []D, emit emitting) {
	known := make(map[string]polledItem[D], len(all))
	for _, d := range all {
		name, item := f.name(d), polledItem[D]{d, f.steady(d)}
		known[name] = item
		if old, was := f.known[name]; !was {
			emit(feedEntry{object: d}, f.cost(d))
		} else if !reflect.DeepEqual(old.steady, item.steady) {
			emit(feedEntry{object: d, before: old.object, cost: costOf(f.cost(old.object))}, f.cost(d))
		}
	}
	for name, old := range f.known {
		if _, is := known[name]; !is {
			emit(feedEntry{object: old.object, before: old.object, deleted: true, cost: costOf(f.cost(old.object))}, 0)
		}
	}
	f.latest, f.known, f.looked = all, known, now
}

func (f *polled[D]) match(object any, _, in *Snapshot) (any, bool) {
	d := object.(D)
	all, _ := in.polled[f.kind].([]D)
	i := slices.IndexFunc(all, func(o D) bool { return f.name(o) == f.name(d) })
	if i < 0 {
		return nil, false
	}
	return all[i], reflect.DeepEqual(f.steady(all[i]), f.steady(d))
}

func (f *polled[D]) show(in *Snapshot) { in.polled[f.kind] = f.latest }

func (f *polled[D]) polls() bool { return true }

func (f *polled[D]) changed() <-chan struct{} { return nil }

func (f *polled[D]) close() {}
