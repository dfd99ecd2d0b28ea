package view

import (
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// keptBytes is about how many bytes of old versions the readers over the network may keep alive in addition to the
// ring: [budget.SlowReaders], within these bounds.
func keptBytes() int64 { return min(max(budget.SlowReaders.Bytes(), leastKept), mostKept) }

const (
	leastKept int64 = 16 << 20
	mostKept  int64 = 1 << 30
)

// keepers are the slow readers that keep a snapshot alive, with the version of every object at that moment. One
// snapshot keeps one version of each object, however often the object changes. But readers that began at different
// moments keep one version each. So a stream that keeps a snapshot for a client counts as a keeper meanwhile. When all
// keepers together keep too much, the keeper that began first is ended: this frees the most.
type keepers struct {
	room  int64
	all   map[*keeper]struct{}
	ended uint64 // number of keepers that were ended so far
}

type keeper struct {
	since int64 // value of oldVersions.ever at the start
	end   func()
}

// Keep counts a reader that keeps a snapshot from now on, until it calls release. When readers keep too many bytes of
// old versions, end is called once for the reader that began first. It must not block, and should cause the reader to
// release the snapshot soon.
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

// limit ends keepers until the versions that they keep fit. Keepers keep at most the versions that were replaced since
// the first one began, and each keeps at most one version of each object.
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

// whyEnded ends the stream of a reader that would keep too much memory.
const whyEnded = Ended("too slow: the old versions of objects that slow readers keep take too much memory; the one that began first ends")

// endWait is how long an ended reader may take to send the reason to its client, before the client is cut off.
const endWait = 2 * time.Second

// Aborter is a [Receiver] whose Event may block on a slow client. Abort makes it fail; any goroutine may call it.
type Aborter interface{ Abort() }

// keep counts the stream as a keeper. Readers without turns are not counted: they are parts of this program, or its
// operator.
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

// letGo ends the stream's time as a keeper, once it keeps no snapshot.
func (s *Stream) letGo() {
	if s.kept != nil {
		s.kept()
		s.kept = nil
	}
	if timer := s.aborting.Load(); timer != nil {
		timer.Stop()
	}
}
