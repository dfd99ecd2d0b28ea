package syncstore

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

// This file is what a Sync learns of the kvstore: what is there, and what came of
// its writes.

// keeper is a Sync as its follower sees it.
type keeper struct{ *Sync }

func (s keeper) Begin() { s.do((*ledger).beginList) }

func (s keeper) Page(p kvstore.Page) {
	s.do(func(l *ledger) {
		for i := range p.Items {
			l.list(follow.NameOf(p.Items[i].Key, s.p.Prefix), &p.Items[i], s.owns)
		}
	})
}

func (s keeper) Done(at kvstore.Position) {
	s.do(func(l *ledger) { l.doneList(at.Revision, s.owns) })
}

func (s keeper) Apply(b kvstore.Batch) {
	if len(b.Events) == 0 {
		return
	}
	s.do(func(l *ledger) {
		for i := range b.Events {
			l.event(follow.NameOf(b.Events[i].Key, s.p.Prefix), &b.Events[i], s.owns)
		}
	})
}

// leasesEnded looks again at which leases are ours.
func (s *Sync) leasesEnded() { s.do(func(l *ledger) { l.leasesEnded(s.owns) }) }

func (s keeper) Proof() (p follow.Proof, ok bool) {
	s.do(func(l *ledger) { p, ok = l.proof(s.p.Prefix) })
	return p, ok
}

func (s keeper) Agrees(p follow.Proof, past kvstore.Past) (is bool) {
	for i := range past.Items {
		past.Items[i].Key = follow.NameOf(past.Items[i].Key, s.p.Prefix)
		if s.p.Shared {
			past.Items[i].Key = []byte(p.Name)
		}
	}
	s.do(func(l *ledger) { is = l.agrees(p, past) })
	return is
}

// take gives work to the outbox: writes, so many at most and of so many bytes in
// all, but for the first one of a transaction. It tells how many bytes are left,
// and whether there is more.
func (s *Sync) take(most, bytes int, first bool) (parts []part, left int, more bool) {
	s.do(func(l *ledger) {
		parts, left = l.take(most, bytes, len(s.p.Prefix), first)
		more = l.backlog() > 0
	})
	return parts, left, more
}

// takeFailed gives a write that was refused before and is due.
func (s *Sync) takeFailed(now time.Time) (one part, ok bool) {
	s.do(func(l *ledger) { one, ok = l.takeFailed(now) })
	return one, ok
}

// backlog is how much there is to take.
func (s *Sync) backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.backlog()
}

// window is how many writes of this Sync a transaction may have: more the more are
// made, and less than enough, the fewer the more are refused, so that a prefix which
// may not be written does not hold up others.
func (s *Sync) window() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// settle notes what came of some parts; err is why they were refused.
func (s *Sync) settle(parts []part, o outcome, rev int64, err error) {
	if o == refused {
		s.errors.Add(int64(len(parts)))
	}
	s.do(func(l *ledger) {
		switch o {
		case refused:
			s.lastErr = err.Error()
			if !l.failures.has(parts[0].at) { // else it was tried by itself
				s.most = max(min(s.most, enough)/2, 1)
			}
		case made:
			s.most = min(s.most*2, kvstore.MaxWrites)
		case unmade:
		}
		now := time.Now()
		for _, one := range parts {
			if o == made && one.kept != nil {
				l.settleKept(one, one.kept, s.owns, now)
			} else {
				l.settle(one, o, rev, err, now)
			}
		}
	})
}
