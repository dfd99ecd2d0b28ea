package syncstore

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
)

type keeper struct{ *Sync }

func (s keeper) Begin() { s.update((*ledger).beginList) }

func (s keeper) Page(p kvstore.Page) {
	s.update(func(l *ledger) {
		for i := range p.Items {
			l.listItem(follow.NameOf(p.Items[i].Key, s.p.Prefix), &p.Items[i], s.owns)
		}
	})
}

func (s keeper) Done(at kvstore.Position) {
	s.update(func(l *ledger) { l.endList(at.Revision, s.owns) })
}

func (s keeper) Apply(b kvstore.Batch) {
	if len(b.Events) == 0 {
		return
	}
	s.update(func(l *ledger) {
		for i := range b.Events {
			l.applyEvent(follow.NameOf(b.Events[i].Key, s.p.Prefix), &b.Events[i], s.owns)
		}
	})
}

func (s *Sync) refreshLeases() { s.update(func(l *ledger) { l.refreshLeases(s.owns) }) }

func (s keeper) Proofs() (all []follow.Proof) {
	s.update(func(l *ledger) { all = l.proofs(s.p.Prefix) })
	return all
}

func (s keeper) Agrees(p follow.Proof, past kvstore.Past) (is bool) {
	s.update(func(l *ledger) { is = l.agrees(p, past) })
	return is
}

// takeWrites returns writes for the outbox: at most this number of writes, and of bytes in all; the first write
// of a transaction may be larger. It also returns the number of bytes that are left, and whether there are more
// writes.
func (s *Sync) takeWrites(most, bytes int, first bool) (parts []part, left int, more bool) {
	s.update(func(l *ledger) {
		parts, left = l.takeWrites(most, bytes, len(s.p.Prefix), first)
		more = l.backlog() > 0
	})
	return parts, left, more
}

func (s *Sync) takeRetry(now time.Time) (one part, ok bool) {
	s.update(func(l *ledger) { one, ok = l.takeRetry(now) })
	return one, ok
}

func (s *Sync) backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.backlog()
}

// window returns the number of writes of this Sync that a transaction may have: more after each acknowledged
// transaction, and less than minWrites after refusals, so that a prefix which may not be written does not delay
// others.
func (s *Sync) window() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maxWrites
}

func (s *Sync) finish(parts []part, o outcome, rev int64, err error) {
	if o == refused {
		s.errors.Add(int64(len(parts)))
	}
	s.update(func(l *ledger) {
		switch o {
		case refused:
			s.lastErr = err.Error()
			if !l.failures.has(parts[0].at) { // else it was a retry
				s.maxWrites = max(min(s.maxWrites, minWrites)/2, 1)
			}
		case acknowledged:
			s.maxWrites = min(s.maxWrites*2, kvstore.MaxWrites)
		case unknown:
		}
		now := time.Now()
		for _, one := range parts {
			if o == acknowledged && one.kept != nil {
				l.finishKept(one, one.kept, s.owns, now)
			} else {
				l.finish(one, o, rev, err, now)
			}
		}
	})
}
