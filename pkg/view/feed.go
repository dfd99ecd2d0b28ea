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

// RingSize is how many changes are kept for the readers that follow. A reader that falls further behind is sent the
// differences between two snapshots; see [Stream.catchUp].
const RingSize uint64 = 1 << 15

// Intervals at which the feed looks for changes.
const (
	feedPause    = 5 * time.Millisecond // after a change, so that many changes are taken together
	feedShare    = 10                   // at least so many times the duration of the last look: looks must take little time
	feedInterval = time.Second          // upper limit of the pause; for data without a change signal, see polledInterval
)

// feed is the one sequence of all changes of all resources. It is a ring: the number and the bytes of the objects that
// it keeps alive are bounded.
type feed struct {
	boot string // distinguishes this feed's positions from those of another process
	db   *statedb.DB
	ips  *ipcache.Cache

	size     uint64 // of the ring
	boundary *boundary.Boundary
	room     int64 // of the ring, in bytes of old versions

	mu        sync.Mutex
	followers []follower
	seq       uint64 // of the newest change
	ring      []feedEntry
	// lost is, for each resource, the position before which its changes are not complete, because a follower missed
	// some.
	lost    []uint64
	old     oldVersions
	kept    keepers
	more    chan struct{} // closed and replaced when there is more
	over    bool          // closed: no more changes are taken in
	readers int           // number of readers that wait for more
}

type feedEntry struct {
	resource int
	deleted  bool
	cost     uint32 // bytes that only before keeps alive, about
	object   any    // with the type that its package gives it
	before   any    // the version at the position before this one; nil for none
}

type round struct {
	now time.Time
	txn statedb.ReadTxn
	ips *ipcache.Snapshot // nil: the present state of the cache
	// sure: data that is in no table is looked at, even when the last look was recent.
	sure bool
}

// follower returns the changes of one resource.
type follower interface {
	// drain emits all changes since the last call, up to the given look, each with the number of bytes that its object
	// adds; it returns false when some changes are missing.
	drain(at round, emit emitting) (complete bool)
	// polls reports whether each drain compares all objects: without readers, these drains are left out.
	polls() bool
	// match returns the object of the same name in another snapshot, nil when there is none, and whether both snapshots
	// show the same for it. The object must be from the first snapshot.
	match(object any, from, in *Snapshot) (found any, same bool)
	// changed returns a channel that is closed once there are changes; nil when there is no such signal.
	changed() <-chan struct{}
	// close ends the follower: the objects that it kept alive can be freed.
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

// run takes changes into the ring until ctx ends.
func (f *feed) run(ctx context.Context) error {
	for {
		start := time.Now()
		f.take(start, false)
		if err := f.wait(ctx, max(feedPause, min(feedShare*time.Since(start), feedInterval))); err != nil {
			return err
		}
	}
}

// wait returns a short time after a follower has changes, and at the latest after feedInterval.
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
	// Wait returns the channels that were closed; the next look asks all followers anyway.
	_, _ = set.Wait(short, pause)
	return ctx.Err()
}

// take takes all changes up to now into the ring, and returns the position after them, and what the tables have there; later
// reads are not older. Unless a reader asks, or one waits, it leaves out the kinds that are in no table.
func (f *feed) take(now time.Time, asked bool) (uint64, statedb.ReadTxn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := round{now: now, txn: f.db.ReadTxn()}
	f.taking(func() {
		for i, one := range f.followers {
			if !one.polls() || asked || f.readers > 0 {
				f.drain(i, at)
			}
		}
	})
	return f.seq, at.txn
}

// at is take up to the moment of the snapshot that it returns. The snapshot has everything that was in the address
// cache at a revision, and the polled resources with these indexes. It returns false when the latest snapshot of the
// cache is not of that moment: a few milliseconds later there is a new one.
func (f *feed) at(now time.Time, revision uint64, polled []int) (*Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := round{now: now, txn: f.db.ReadTxn(), ips: f.ips.Snapshot()}
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
			m.polled = make(map[Kind]any, len(polled))
		}
		f.followers[i].(interface{ show(*Snapshot) }).show(m)
	}
	m.Position = f.seq
	return m, fits
}

// drain takes in the changes of one kind; mu is held.
func (f *feed) drain(resource int, at round) {
	one := f.followers[resource]
	if f.over && !one.polls() {
		return // it is closed
	}
	complete := false
	// If the changes of a kind cannot be taken in, only the readers of this kind lose their positions.
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

// taking calls put, and wakes up the waiting readers if it added changes; mu is held.
func (f *feed) taking(put func()) {
	before := f.seq
	if put(); f.seq != before {
		close(f.more)
		f.more = make(chan struct{})
		f.kept.limit(&f.old)
	}
}

// reading counts one more reader that waits for changes, until end is called.
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

// after copies the changes after a position into dst, as many as fit. It returns them with the position after them and
// a channel that is closed when there are more. It returns false when the position is unknown, or too old for one of
// the resources.
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

// lag reports whether the ring holds all changes after a position, and whether a reader there is near. Near means that
// the reader has to read so few changes, and so few bytes of old versions, that they are not dropped before it has read
// them.
func (f *feed) lag(position uint64, resources []int) (held, near bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.holds(position, resources) {
		return false, false
	}
	return true, position == f.seq || f.seq-position <= f.size/2 && f.old.ever-f.old.marks[position%f.size] <= f.room/2
}

// holds reports whether the ring has all changes after a position; mu is held.
func (f *feed) holds(position uint64, resources []int) bool {
	if position > f.seq || f.seq-position > uint64(len(f.ring)) {
		return false
	}
	return !slices.ContainsFunc(resources, func(r int) bool { return position < f.lost[r] })
}

// token names a position, at which a later stream can continue.
func (f *feed) token(position uint64) string { return fmt.Sprintf("%s-%d", f.boot, position) }

// partial returns the token of a reader that has not received a whole snapshot. It is no position: a stream with it
// begins again.
func (f *feed) partial() string { return f.boot + "-partial" }

// position parses a token; false when it is not one of this feed.
func (f *feed) position(token string) (uint64, bool) {
	text, ours := strings.CutPrefix(token, f.boot+"-")
	if !ours {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}
