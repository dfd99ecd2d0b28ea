package ipcache

import "net/netip"

// Change is a visible change at one prefix.
type Change struct {
	// Before and After are the winners, nil for none. They are the same entry when only other claims on the prefix were
	// added or removed.
	Before, After *Entry
	// Conflict reports whether more than one cluster claims the prefix, or did so before.
	Conflict bool
	replaced uint32
}

// Replaced returns about how many bytes only this change keeps alive: those of the winner before, unless it still is
// the winner.
func (c Change) Replaced() int { return int(c.replaced) }

// Prefix returns the prefix of the change.
func (c Change) Prefix() netip.Prefix {
	if c.After != nil {
		return c.After.Prefix()
	}
	return c.Before.Prefix()
}

// ringSize is how many changes are kept for followers: as many as happen in 50 ms, the interval of a follower, at
// 600,000 changes a second.
const ringSize = 1 << 15

// ringBytes is about how many bytes of replaced entries the ring keeps alive; above it, the oldest changes are dropped.
const ringBytes = 16 << 20

// ring holds the latest changes, each at its revision.
type ring struct {
	changes []Change
	first   uint64 // revision before the oldest kept change
	bytes   int    // of the replaced entries
}

func (r *ring) put(revision uint64, ch Change) {
	if ch.Before != nil && ch.Before != ch.After {
		ch.replaced = uint32(ch.Before.Cost())
	}
	r.bytes += ch.Replaced()
	if len(r.changes) < ringSize {
		r.changes = append(r.changes, ch) // revisions begin with 1 and have no gaps
	} else {
		if r.first == revision-1-ringSize {
			r.drop()
		}
		r.changes[(revision-1)%ringSize] = ch
	}
	for r.bytes > ringBytes && r.first < revision-1 {
		r.drop()
	}
}

// drop drops the oldest change.
func (r *ring) drop() {
	oldest := &r.changes[r.first%ringSize]
	r.bytes -= oldest.Replaced()
	*oldest = Change{}
	r.first++
}

// after returns the changes after a revision, up to the newest one or as many as fit into dst; false when some were
// dropped already.
func (r *ring) after(revision, newest uint64, dst []Change) ([]Change, bool) {
	if revision > newest || revision < r.first {
		return nil, false
	}
	dst = dst[:0]
	for revision < newest && len(dst) < cap(dst) {
		dst = append(dst, r.changes[revision%ringSize])
		revision++
	}
	return dst, true
}

// Since returns the changes after a revision, in their order: one for each revision, at most as many as fit into dst,
// whose contents are replaced. It returns false when some of these changes were dropped already; a follower must then
// begin again with a [Snapshot] that is not older than [Cache.Revision].
func (c *Cache) Since(revision uint64, dst []Change) ([]Change, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.core.recent.after(revision, c.core.revision, dst)
}

// Changed returns a channel that is closed once there is a change after the revision.
func (c *Cache) Changed(revision uint64) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core.revision > revision {
		now := make(chan struct{})
		close(now)
		return now
	}
	if c.awaited == nil {
		c.awaited = make(chan struct{})
	}
	return c.awaited
}

// wake wakes up the goroutines that wait for a change; mu is held for writing.
func (c *Cache) wake() {
	if c.awaited != nil {
		close(c.awaited)
		c.awaited = nil
	}
}
