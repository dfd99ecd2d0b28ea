package allocator

import "time"

type jobKind int

const (
	// jobDrop deletes the reference of a key that is not used any more.
	jobDrop jobKind = iota
	// jobRefresh writes mapping and reference of a key that is used, where they
	// are missing, though the mapping is there for all that is known.
	jobRefresh
	// jobPutBack does that for a mapping that is known to be missing.
	jobPutBack
	// jobRestore does it for a mapping that others have altered.
	jobRestore
)

func (k jobKind) String() string {
	return [...]string{"drop", "refresh", "put back", "restore"}[k]
}

// job is something to do in the backend for a key, whose turn it has: it ends with done.
type job struct {
	kind    jobKind
	key     Key
	text    string
	id      uint64
	instead Key // jobRestore: what the mapping says
}

// The pauses after failures (spec wire.md §5). The longest is our own: an
// allocation with 16 attempts would else take 11 minutes.
const (
	pauseFirst = 20 * time.Millisecond
	pauseMax   = 10 * time.Second
)

// pause is how long to wait after so many failures in a row, 1 or more: between
// half and all of 20 ms doubled each time, as jitter decides, 0 <= jitter < 1.
func pause(failures int, jitter float64) time.Duration {
	d := pauseMax
	if shift := failures - 1; shift < 16 {
		d = min(pauseFirst<<shift, pauseMax)
	}
	return d/2 + time.Duration(jitter*float64(d/2))
}

// addJob makes a job due, unless one is. Its kind is decided when it begins.
func (c *core) addJob(u *use, now time.Time) {
	if u.busy {
		u.again = true
	}
	if _, due := c.todo[u]; !due {
		c.todo[u] = struct{}{}
		u.failures, u.due = 0, now
	}
}

// disturbed: others changed the mapping of a key in use.
func (c *core) disturbed(u *use, now time.Time) {
	if c.protect {
		c.addJob(u, now)
	}
}

func (c *core) refreshAll(now time.Time) {
	for _, u := range c.byID {
		c.addJob(u, now)
	}
}

// next begins up to n jobs that are due.
func (c *core) next(now time.Time, n int) []job {
	var jobs []job
	for u := range c.todo {
		if len(jobs) == n {
			break
		}
		if !u.busy && !u.due.After(now) {
			jobs = append(jobs, c.beginJob(u))
		}
	}
	return jobs
}

// take begins the job of one key, if there is one and nobody works on the key.
func (c *core) take(text string) (job, bool) {
	u := c.uses[text]
	if _, due := c.todo[u]; !due || u.busy {
		return job{}, false
	}
	return c.beginJob(u), true
}

func (c *core) beginJob(u *use) job {
	u.busy, u.again = true, false
	j := job{kind: jobRefresh, key: u.key, text: u.text, id: u.id}
	switch mapped := c.there(u.id); {
	case u.refs == 0:
		j.kind = jobDrop
	case mapped == nil:
		j.kind = jobPutBack
	case c.protect && mapped.GetKey() != u.text:
		j.kind, j.instead = jobRestore, mapped
	}
	return j
}

// done ends a job. One that has failed is due again after a pause.
func (c *core) done(text string, failed bool, now time.Time, jitter float64) {
	u := c.uses[text]
	u.busy = false
	switch {
	case failed:
		u.failures++
		u.due = now.Add(pause(u.failures, jitter))
	case u.again:
		u.failures, u.due = 0, now
	default:
		delete(c.todo, u)
	}
	u.again = false
	c.forget(u)
}

// wake returns when the next job is due, which is now if it is overdue, and false when none is.
func (c *core) wake(now time.Time) (at time.Time, ok bool) {
	for u := range c.todo {
		switch {
		case u.busy:
		case !u.due.After(now):
			return now, true
		case !ok || u.due.Before(at):
			at, ok = u.due, true
		}
	}
	return at, ok
}

// upsert takes in a mapping that was seen. It returns what it was before, and whether the key
// has another ID besides.
func (c *core) upsert(id uint64, key Key, now time.Time) (old Key, duplicate bool) {
	text := key.GetKey()
	delete(c.rejected, id)
	if was := c.mappings.key(id); was != nil && was.GetKey() == text {
		return key, false
	}
	old = c.mappings.set(id, key)
	c.pool.Remove(id)
	c.noticed(old)
	if u := c.byID[id]; u != nil && u.text != text {
		c.disturbed(u, now)
	}
	return old, len(c.mappings.more[text]) > 0
}

// there returns the key of the mapping that is there, whether it was refused or not.
func (c *core) there(id uint64) Key {
	if key := c.rejected[id]; key != nil {
		return key
	}
	return c.mappings.key(id)
}

// reject takes in a mapping that was seen and refused. Its ID is taken, and an earlier
// mapping of it is in force but not there.
func (c *core) reject(id uint64, key Key, now time.Time) {
	c.rejected[id] = key
	c.pool.Remove(id)
	c.noticed(c.mappings.key(id))
	if u := c.byID[id]; u != nil && u.text != key.GetKey() {
		c.disturbed(u, now)
	}
}

// delete takes in that a mapping is gone, and returns what it was.
func (c *core) delete(id uint64, now time.Time) (old Key) {
	old = c.mappings.delete(id)
	if old == nil && c.rejected[id] == nil {
		return nil
	}
	delete(c.rejected, id)
	c.noticed(old)
	if u := c.byID[id]; u != nil {
		c.disturbed(u, now)
	} else {
		c.pool.Insert(id)
	}
	return old
}

// noticed notes for an allocation of the key, if there is one, that a mapping of it is gone. That
// may be older than what the allocation has done, but if it is not, it is never seen again.
func (c *core) noticed(gone Key) {
	if gone == nil {
		return
	}
	if u := c.uses[gone.GetKey()]; u != nil && u.busy && u.refs == 0 {
		u.attempt.changed = true
	}
}
