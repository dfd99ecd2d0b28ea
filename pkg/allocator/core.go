package allocator

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoFreeID is the error of an allocation when every ID of the range is taken.
var ErrNoFreeID = errors.New("every ID of the range is taken")

// errInUse is the error when two keys claim one ID: a mapping was altered while its key was in use.
var errInUse = errors.New("the ID is in use for another key on this node")

// core decides on the next steps, and the Allocator does them. It has the mappings that were seen and the pool. For
// each key it has the use on this node, and whether an allocation or a job works on the key. At most one of these
// works on a key at a time.
//
// It does nothing itself: its inputs are events and the time, its output is the work to do in the backend. The
// Allocator's lock guards it.
//
// An ID of the range is available in the pool if and only if no mapping of it is
// known, it is not used here, and it is not leased.
type core struct {
	mappings mappings // without those that were refused
	// rejected are the existing mappings that were refused, by ID. For such an ID, mappings has the previous mapping,
	// if any.
	rejected map[uint64]Key
	pool     *IDPool
	protect  bool // whether mappings in use that others changed are put back

	uses map[string]*use // by the text of the key
	byID map[uint64]*use // those with refs > 0
	todo map[*use]struct{}
}

// use is the state of a key, apart from its mapping. It exists while the key is in use, while an allocation or a job
// works on it, and while its reference must still be deleted.
type use struct {
	key  Key
	text string
	id   uint64 // its ID on this node, now or before; set when refs > 0 or a job is due
	refs int    // uses on this node
	busy bool   // an allocation or a job works on it

	attempt attempt // of the current allocation

	// A use in core.todo needs a job. again means that it needs another one after that.
	again    bool
	failures int       // of the job, in a row
	due      time.Time // of the job
}

type attempt struct {
	lease   uint64 // the ID that it has leased
	gone    uint64 // the ID whose mapping was missing
	taken   uint64 // the ID that turned out to belong to another key
	unsure  bool   // a reference may have been taken
	changed bool   // a mapping of the key was deleted meanwhile
}

func newCore(min, max uint64, protect bool) *core {
	return &core{
		mappings: newMappings(), rejected: make(map[uint64]Key), pool: NewIDPool(min, max), protect: protect,
		uses: make(map[string]*use), byID: make(map[uint64]*use), todo: make(map[*use]struct{}),
	}
}

func (c *core) hit(text string) (uint64, bool) {
	u := c.uses[text]
	if u == nil || u.refs == 0 {
		return NoID, false
	}
	u.refs++
	return u.id, true
}

// turn is the answer to a call that requests to work on a key.
type turn int

const (
	turnWait  turn = iota // another allocation or job works on it
	turnMine              // the caller works on it, from now on
	turnInUse             // it is in use already, and its count was increased
)

// begin begins an allocation. It ends with used or abandon.
func (c *core) begin(key Key, text string) (uint64, turn) {
	if id, ok := c.hit(text); ok {
		return id, turnInUse
	}
	u := c.uses[text]
	switch {
	case u == nil:
		u = &use{key: key, text: text}
		c.uses[text] = u
	case u.busy:
		return NoID, turnWait
	}
	u.busy, u.attempt = true, attempt{}
	return NoID, turnMine
}

// candidate is an ID that an allocation should try.
type candidate struct {
	id     uint64
	create bool // whether to create its mapping first
}

// candidate selects the ID to try. referenced is the ID that the references in the store have, or NoID. The
// referenced ID comes first, then a mapping that was seen, then a free ID. A leased ID stays the one to try until it
// is known to belong to another key: an attempt that failed may have created its mapping.
func (c *core) candidate(text string, referenced uint64) (candidate, error) {
	u := c.uses[text]
	a := &u.attempt
	if referenced != NoID {
		if c.byID[referenced] != nil {
			return candidate{}, fmt.Errorf("%w: %d is referenced for %s, and used for %s", errInUse, referenced, u.key, c.byID[referenced].key)
		}
		return candidate{referenced, a.gone == referenced}, nil
	}
	if id := c.mappings.id(text); id != a.taken && c.pool.inRange(id) && c.byID[id] == nil && c.rejected[id] == nil {
		return candidate{id, a.gone == id}, nil
	}
	if c.byID[a.lease] != nil {
		c.endLease(u, NoID)
	}
	if a.lease == NoID {
		id, ok := c.pool.Lease()
		if !ok {
			return candidate{}, fmt.Errorf("%w: %d to %d", ErrNoFreeID, c.pool.min, c.pool.min+c.pool.size-1)
		}
		a.lease = id
	}
	return candidate{a.lease, true}, nil
}

// refused records that there was no mapping from the candidate to the key.
func (c *core) refused(text string, tried candidate) {
	a := &c.uses[text].attempt
	if !tried.create {
		a.gone = tried.id
		return
	}
	a.taken = tried.id
	if a.lease == tried.id {
		c.pool.Release(a.lease)
		a.lease = NoID
	}
}

// unsure records that it is unknown whether the reference was taken.
func (c *core) unsure(text string, id uint64) {
	u := c.uses[text]
	u.id, u.attempt.unsure = id, true
}

// used ends an allocation: the key's reference is held. It reports false when another key got this ID here meanwhile,
// because others have altered a mapping; then the allocation continues.
func (c *core) used(text string, id uint64, now time.Time) bool {
	u := c.uses[text]
	if c.byID[id] != nil {
		c.unsure(text, id)
		c.refused(text, candidate{id, true})
		return false
	}
	c.endLease(u, id)
	c.pool.Remove(id)
	u.id, u.refs, u.busy = id, 1, false
	c.byID[id] = u
	delete(c.todo, u) // cancels the deletion of an earlier reference
	mapped := c.there(id)
	if u.attempt.changed || mapped != nil && mapped.GetKey() != text {
		c.disturbed(u, now)
	}
	return true
}

// abandon ends a failed allocation. It keeps nothing, except a job to delete a reference that may have been taken.
func (c *core) abandon(text string, now time.Time) {
	u := c.uses[text]
	c.endLease(u, NoID)
	u.busy = false
	if u.attempt.unsure {
		c.addJob(u, now)
	}
	c.forget(u)
}

// endLease ends the lease of an allocation; used is the ID that the allocation got, or NoID.
func (c *core) endLease(u *use, used uint64) {
	switch lease := u.attempt.lease; lease {
	case NoID:
	case used:
		c.pool.Use(lease)
	default:
		c.pool.Release(lease)
	}
	u.attempt.lease = NoID
}

// forget drops a key that has no state to keep.
func (c *core) forget(u *use) {
	if _, due := c.todo[u]; !due && !u.busy && u.refs == 0 {
		delete(c.uses, u.text)
	}
}

// release decreases the count of uses. At zero, a job becomes due that deletes the reference.
func (c *core) release(text string, now time.Time) (lastUse bool, err error) {
	u := c.uses[text]
	if u == nil || u.refs == 0 {
		return false, fmt.Errorf("%w: the key is not in use on this node", ErrIdentityNonExistent)
	}
	if u.refs--; u.refs > 0 {
		return false, nil
	}
	delete(c.byID, u.id)
	if c.there(u.id) == nil {
		c.pool.Insert(u.id)
	}
	u.due = now // also during the pause after a failure
	c.addJob(u, now)
	return true, nil
}
