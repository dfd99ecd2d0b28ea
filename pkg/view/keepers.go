package view

import (
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// keptBytes is how many bytes of old versions the readers over the network may keep alive beside the ring, about:
// [budget.SlowReaders], within these bounds.
func keptBytes() int64 { return min(max(budget.SlowReaders.Bytes(), leastKept), mostKept) }

const (
	leastKept int64 = 16 << 20
	mostKept  int64 = 1 << 30
)

// A reader that is slow keeps the snapshot alive that it is sent, with every object as it was then. Of one object
// that is one version, however often it changes. But readers that began at different moments keep one version
// each. So who keeps a snapshot for somebody else counts as a keeper meanwhile, and when all keepers together may
// keep too much, the one that began first ends: the others keep less without it than without any other.
type keepers struct {
	room  int64
	all   map[*keeper]struct{}
	ended uint64 // that were ended so far
}

type keeper struct {
	since int64 // of oldVersions.ever
	end   func()
}

// Keep counts a reader that keeps a snapshot from now on, until it calls release. When readers keep too many bytes of old
// versions, end is called for the one that began first, once; it must not wait. What it does should let go of the snapshot soon.
func (v *View) Keep(end func()) (release func()) {
	return v.feed.keep(end)
}

func (f *feed) keep(end func()) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := &keeper{f.old.ever, end}
	f.kept.all[k] = struct{}{}
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.kept.all, k)
	})
}

// limit ends keepers until what they keep has room. The versions that were replaced since the first one began are
// all that is kept; and each keeps one version of each object at most.
func (k *keepers) limit(old *oldVersions) {
	for {
		var first *keeper
		var each int64
		for one := range k.all {
			if first == nil || one.since < first.since {
				first = one
			}
			each += min(old.ever-one.since, old.current)
		}
		if first == nil || min(old.ever-first.since, each) <= k.room {
			return
		}
		delete(k.all, first)
		k.ended++
		first.end()
	}
}

// whyEnded ends the stream of a reader that would keep too much in memory.
const whyEnded = Ended("too slow: the old versions of objects that slow readers keep take too much memory; the one that began first ends")

// endWait is how long a reader that is ended may take to say so to its client, before that is cut off.
const endWait = 2 * time.Second

// Aborter is a [Receiver] whose Event may be waiting for a slow client. Abort makes it fail; any goroutine may
// call it.
type Aborter interface{ Abort() }

// keep counts the stream as a keeper. Readers without turns are parts of this program, or its operator.
func (s *Stream) keep() {
	if s.turns == nil || s.kept != nil {
		return
	}
	s.ended.Store(false)
	s.kept = s.v.feed.keep(func() {
		s.ended.Store(true)
		if a, is := s.to.(Aborter); is {
			s.aborting.Store(time.AfterFunc(endWait, a.Abort))
		}
	})
}

// letGo is for a stream that keeps no snapshot any more.
func (s *Stream) letGo() {
	if s.kept != nil {
		s.kept()
		s.kept = nil
	}
	if timer := s.aborting.Load(); timer != nil {
		timer.Stop()
	}
}
