package view

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// RingSize is how many changes are kept for those who follow. Who falls further
// behind is sent what differs between two moments; see [Stream.catchUp].
const RingSize uint64 = 1 << 15

// How often the feed looks.
const (
	feedPause    = 5 * time.Millisecond // after a change, so that many come at once
	feedShare    = 10                   // and this many times as long as the last look took, so that it never is what the agent mostly does
	feedInterval = time.Second          // at the latest; at what tells nobody that it changed, see polledInterval
)

// feed is the one sequence of all changes of all resources. It is a ring: the
// objects that it keeps alive are bounded, in number and in bytes.
type feed struct {
	boot string // tells this feed's positions from those of another process
	db   *statedb.DB
	ips  *ipcache.Cache

	size     uint64 // of the ring
	boundary *boundary.Boundary
	room     int64 // of the ring, in bytes of old versions

	mu        sync.Mutex
	followers []follower
	seq       uint64 // of the newest change
	ring      []feedEntry
	// lost is, for each resource, the position before which its changes are not
	// complete: a follower passed something by.
	lost    []uint64
	old     oldVersions
	kept    keepers
	more    chan struct{} // closed and replaced when there is more
	over    bool          // closed: nothing is taken in any more
	readers int           // who wait for more
}

type feedEntry struct {
	resource int
	deleted  bool
	cost     uint32 // bytes that nothing else but before keeps alive, about
	object   any    // as the domain has it
	before   any    // what it was at the position before this one; nil for nothing
}

type look struct {
	now time.Time
	txn statedb.ReadTxn
	ips *ipcache.Snapshot // nil: the cache as it is
	// sure: what no table holds is looked at, whenever that was done last.
	sure bool
}

// follower brings the changes of one resource.
type follower interface {
	// drain gives all changes since the last call, up to what it is to look at, each with how many bytes its
	// object takes that nothing had before; false when some are missing.
	drain(at look, emit emitting) (complete bool)
	// polls reports whether each drain looks at everything there is: while nobody
	// reads, that is left out.
	polls() bool
	// match returns the object of the same name in another snapshot, nil when it has
	// none, and whether both show the same of it. The object is one of the first
	// snapshot, and of the resource with this index.
	match(resource int, object any, from, in *Snapshot) (found any, same bool)
	// changed returns a channel that is closed once there is more; nil when nothing tells.
	changed() <-chan struct{}
	// close ends it: what it had kept alive may go.
	close()
}

type emitting func(e feedEntry, added int)

func newFeed(db *statedb.DB, ips *ipcache.Cache, followers []follower, size uint64, room int64) *feed {
	return &feed{
		boot: strconv.FormatUint(rand.Uint64(), 36), db: db, ips: ips,
		size: size, room: room, boundary: boundary.New(nil).Part("changes"),
		followers: followers,
		lost:      make([]uint64, len(followers)),
		old:       oldVersions{of: make([]oldOfKind, len(followers))},
		kept:      keepers{all: make(map[*keeper]struct{})},
		more:      make(chan struct{}),
	}
}

// run takes what changes into the ring until ctx ends.
func (f *feed) run(ctx context.Context) error {
	for {
		start := time.Now()
		f.take(start, false)
		if err := f.wait(ctx, max(feedPause, min(feedShare*time.Since(start), feedInterval))); err != nil {
			return err
		}
	}
}

// wait returns a while after a follower has more, and now and then anyway.
func (f *feed) wait(ctx context.Context, pause time.Duration) error {
	set := statedb.NewWatchSet()
	f.mu.Lock()
	for _, one := range f.followers {
		if ch := one.changed(); ch != nil {
			set.Add(ch)
		}
	}
	f.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, feedInterval)
	defer cancel()
	// What it returns says which one has more; all of them are asked anyway.
	_, _ = set.Wait(short, pause)
	return ctx.Err()
}

// take takes what changed until now into the ring, and returns the position after it: what a reader
// sees afterwards is not older. Unless a reader asks, it leaves out what only those who read need.
func (f *feed) take(now time.Time, asked bool) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := look{now: now, txn: f.db.ReadTxn()}
	f.taking(func() {
		for i, one := range f.followers {
			if !one.polls() || asked || f.readers > 0 {
				f.drain(i, at)
			}
		}
	})
	return f.seq
}

// at is take up to the moment of the snapshot that it returns: one that has
// everything that was in the address cache at a revision, with what no table holds of
// some resources. It is false when the latest snapshot of the cache is not of that
// moment: there will be another one in a few milliseconds.
func (f *feed) at(now time.Time, revision uint64, polled []int) (*Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := look{now: now, txn: f.db.ReadTxn(), ips: f.ips.Snapshot()}
	fits := at.ips.Revision() >= revision
	for _, one := range f.followers {
		if ips, is := one.(*ipFollower); is && ips.revision > at.ips.Revision() && !f.over {
			fits = false
		}
	}
	m := &Snapshot{Txn: at.txn, IPs: at.ips}
	if fits {
		f.taking(func() {
			for i := range f.followers {
				at.sure = slices.Contains(polled, i)
				f.drain(i, at)
			}
		})
	}
	for _, i := range polled {
		if m.polled == nil {
			m.polled = make(map[int]any, len(polled))
		}
		m.polled[i] = f.followers[i].(interface{ shown() any }).shown()
	}
	m.Position = f.seq
	return m, fits
}

// drain takes in the changes of one kind; mu is held.
func (f *feed) drain(resource int, at look) {
	one := f.followers[resource]
	if f.over && !one.polls() {
		return // it is closed
	}
	complete := false
	// An object that cannot be taken in costs the readers of its kind their positions, and nobody else anything.
	_ = f.boundary.Run(func() error {
		complete = one.drain(at, func(e feedEntry, added int) {
			e.resource = resource
			f.put(e)
			f.old.current += int64(added) - int64(e.cost)
		})
		return nil
	}, "resource", resource)
	if !complete {
		f.put(feedEntry{resource: resource})
		f.lost[resource] = f.seq
	}
}

// taking wakes up who waits if something is put meanwhile; mu is held.
func (f *feed) taking(put func()) {
	before := f.seq
	if put(); f.seq != before {
		close(f.more)
		f.more = make(chan struct{})
		f.kept.limit(&f.old)
	}
}

// reading counts one more who waits for more, until it calls what is returned.
func (f *feed) reading() (end func()) {
	count := func(by int) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.readers += by
	}
	count(1)
	return func() { count(-1) }
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.over = true
	for _, one := range f.followers {
		one.close()
	}
}

// put appends one change; mu is held.
func (f *feed) put(e feedEntry) {
	if uint64(len(f.ring)) < f.size {
		f.ring = append(f.ring, e) // positions begin with 1
		f.old.marks = append(f.old.marks, f.old.ever)
	} else {
		at := f.seq % f.size
		f.old.forget(&f.ring[at])
		f.ring[at], f.old.marks[at] = e, f.old.ever
	}
	f.seq++
	if f.old.add(&e); f.old.sum > f.room {
		f.thin()
	}
}

// after copies the changes behind a position into dst, as many as fit, and returns them with the
// position behind them and a channel that is closed when there are more. It is false when the
// position is unknown, or too far back for one of the resources.
func (f *feed) after(position uint64, resources []int, dst []feedEntry) ([]feedEntry, uint64, <-chan struct{}, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.holds(position, resources) {
		return nil, 0, nil, false
	}
	dst = dst[:0]
	for position < f.seq && len(dst) < cap(dst) {
		dst = append(dst, f.ring[position%f.size])
		position++
	}
	return dst, position, f.more, true
}

// lag reports whether after has all changes behind a position, and whether the reader there is near: so few are
// behind it, and so few bytes of old versions, that they will not be gone before it has read them.
func (f *feed) lag(position uint64, resources []int) (held, near bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.holds(position, resources) {
		return false, false
	}
	return true, position == f.seq || f.seq-position <= f.size/2 && f.old.ever-f.old.marks[position%f.size] <= f.room/2
}

// holds reports whether all changes behind a position are there; mu is held.
func (f *feed) holds(position uint64, resources []int) bool {
	if position > f.seq || f.seq-position > uint64(len(f.ring)) {
		return false
	}
	return !slices.ContainsFunc(resources, func(r int) bool { return position < f.lost[r] })
}

// token names a position for those who want to go on there.
func (f *feed) token(position uint64) string { return fmt.Sprintf("%s-%d", f.boot, position) }

// partial is the token of somebody who has not seen a whole snapshot. It is no
// position: to go on there means to begin again.
func (f *feed) partial() string { return f.boot + "-partial" }

// position reads a token; false when it is not one of this feed.
func (f *feed) position(token string) (uint64, bool) {
	text, ours := strings.CutPrefix(token, f.boot+"-")
	if !ours {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}
