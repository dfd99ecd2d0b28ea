package ipcache

import (
	"iter"
	"net/netip"
	"time"

	"github.com/tidwall/btree"
)

// Snapshot is the view at one moment. It never changes. It costs only the memory of the entries that were removed
// since.
type Snapshot struct {
	winners  *btree.BTreeG[*Entry]
	contests *btree.BTreeG[contest]

	revision uint64
	made     time.Time
}

// copy makes a snapshot; no goroutine may read the trees meanwhile.
func (c *core) copy(now time.Time) *Snapshot {
	return &Snapshot{winners: c.winners.Copy(), contests: c.contests.Copy(), revision: c.revision, made: now}
}

// Len returns the number of prefixes.
func (s *Snapshot) Len() int { return s.winners.Len() }

// Revision returns the cache's revision when the snapshot was made.
func (s *Snapshot) Revision() uint64 { return s.revision }

// At returns the winner of the prefix that e claims; nil when there is none.
func (s *Snapshot) At(e *Entry) *Entry {
	winner, _ := s.winners.Get(e)
	return winner
}

// Claims returns the number of claims on the prefix of a winner.
func (s *Snapshot) Claims(winner *Entry) int {
	if at, contested := s.contests.Get(contest{place: winner.place()}); contested {
		return at.claims
	}
	return 1
}

// From iterates over the winners after the prefix, in the order of addresses, IPv4 first, and of lengths, shorter
// first. The zero prefix means from the start.
func (s *Snapshot) From(after netip.Prefix) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if !after.IsValid() {
			s.winners.Scan(yield)
			return
		}
		start := placeOf(after)
		s.winners.Ascend(&Entry{at: start.at, bits: start.bits}, func(e *Entry) bool {
			return e.place() == start || yield(e)
		})
	}
}

// Contested iterates over the prefixes that more than one cluster claims, in the order of From.
func (s *Snapshot) Contested() iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		s.contests.Scan(func(c contest) bool { return !c.conflict || yield(c.place.prefix()) })
	}
}
