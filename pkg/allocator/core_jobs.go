package allocator

import "time"

type jobKind int

const (
	// jobDrop deletes the reference of a key that is no longer used.
	jobDrop jobKind = iota
	// jobRefresh writes mapping and reference of a key in use where they are missing. The mapping is not known to be
	// missing.
	jobRefresh
	// jobPutBack does the same for a mapping that is known to be missing.
	jobPutBack
	// jobRestore does the same for a mapping that others have altered.
	jobRestore
)

func (k jobKind) String() string {
	return [...]string{"drop", "refresh", "put back", "restore"}[k]
}

// job is work in the backend for a key. It has the turn at the key, until done ends it.
type job struct {
	kind    jobKind
	key     Key
	text    string
	id      uint64
	instead Key // jobRestore: the key that the mapping has
}

// The pauses after failures (spec wire.md §5). pauseMax is not from the spec: without it, an allocation with 16
// attempts would take 11 minutes.
const (
	pauseFirst = 20 * time.Millisecond
	pauseMax   = 10 * time.Second
)

// pause returns how long to wait after this number of failures in a row, 1 or more. The base is 20 ms, doubled with
// each further failure, up to pauseMax. The result is between half of the base and all of it, according to jitter,
// 0 <= jitter < 1.
func pause(failures int, jitter float64) time.Duration {
	d := pauseMax
	if shift := failures - 1; shift < 16 {
		d = min(pauseFirst<<shift, pauseMax)
	}
	return d/2 + time.Duration(jitter*float64(d/2))
}

// addJob makes a job due, unless one is due already. The kind of the job is decided when it begins.
func (c *core) addJob(u *use, now time.Time) {
	if u.busy {
		u.again = true
	}
	if _, due := c.todo[u]; !due {
		c.todo[u] = struct{}{}
		u.failures, u.due = 0, now
	}
}

// disturbed records that others changed the mapping of a key in use.
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

// take begins the job of one key, if one is due and no other work on the key is in progress.
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

// done ends a job. A failed job is due again after a pause.
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

// wake returns when the next job is due: now if it is overdue. It returns false when no job is due.
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

// upsert records a mapping that was seen. It returns the previous key of the ID, and whether the key has another ID
// too.
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

// there returns the key of the existing mapping, refused or not.
func (c *core) there(id uint64) Key {
	if key := c.rejected[id]; key != nil {
		return key
	}
	return c.mappings.key(id)
}

// reject records a mapping that was seen and refused. Its ID is taken. An earlier mapping of the ID stays in force,
// although it no longer exists.
func (c *core) reject(id uint64, key Key, now time.Time) {
	c.rejected[id] = key
	c.pool.Remove(id)
	c.noticed(c.mappings.key(id))
	if u := c.byID[id]; u != nil && u.text != key.GetKey() {
		c.disturbed(u, now)
	}
}

// delete records that a mapping is gone, and returns its key.
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

// noticed records, for the current allocation of the key if there is one, that a mapping of the key is gone. The
// deletion may be older than the steps of the allocation. But if it is not, no later event reports it.
func (c *core) noticed(gone Key) {
	if gone == nil {
		return
	}
	if u := c.uses[gone.GetKey()]; u != nil && u.busy && u.refs == 0 {
		u.attempt.changed = true
	}
}
