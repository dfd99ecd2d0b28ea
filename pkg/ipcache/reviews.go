package ipcache

// task is a set of claims to judge again, because a network has another owner or an address another node: first the
// claims that count, then the others.
type task struct {
	within place
	reach  reach
}

// reach defines which claims are judged again.
type reach uint8

const (
	reachInside    reach = iota // all within a place
	reachPlace                  // those exactly at a place
	reachEndpoints              // those exactly at an address that do not come from nodes: always few
)

// covers reports whether claims at a place are to be judged again.
func (t task) covers(p place) bool {
	if t.reach == reachInside {
		return p.inside(t.within)
	}
	return p == t.within
}

// review is a task in progress.
type review struct {
	task
	from   *Entry // the next claim to judge
	barred bool   // the second half, for claims that may not count
}

// reviewed is how many claims are judged while the lock is held once. The beginning and the end of a review count as
// reviewCost claims.
const (
	reviewed   = 1024
	reviewCost = 8
)

// reviews is the tasks to do. A cluster causes tasks with each change of its networks, and each may be large. So each
// cluster has its own queue. The queues are served in rotation, the own cluster always first. A task that is part of
// another waiting one is done with that one.
type reviews struct {
	own    line
	lines  []*line // of the remote clusters with tasks, the next one first
	of     map[Claimant]*line
	serial uint64 // how many tasks were added
}

// line is the queue of one cluster.
type line struct {
	cluster Claimant
	now     *review // the task in progress
	tasks   []task  // the next one first; may have some that are no longer waiting
	waiting map[task]struct{}
	lengths [hostBits + 1]int // number of waiting tasks with reachInside, by the length of their place
}

func newReviews() reviews {
	return reviews{of: make(map[Claimant]*line), own: line{waiting: make(map[task]struct{})}}
}

// ask adds a task for the cluster of a claim.
func (r *reviews) ask(e *Entry, t task) {
	r.serial++
	if !e.remote() {
		r.own.add(t)
		return
	}
	l := r.of[*e.cluster]
	if l == nil {
		l = &line{cluster: *e.cluster, waiting: make(map[task]struct{})}
		r.of[l.cluster] = l
		r.lines = append(r.lines, l)
	}
	l.add(t)
}

// any reports whether there are tasks.
func (r *reviews) any() bool { return len(r.lines) > 0 || r.own.any() }

func (l *line) any() bool { return l.now != nil || len(l.waiting) > 0 }

func (l *line) add(t task) {
	if _, is := l.waiting[t]; is || l.within(t) {
		return
	}
	l.waiting[t] = struct{}{}
	if l.tasks = append(l.tasks, t); t.reach == reachInside {
		l.lengths[t.within.bits]++
	}
}

// within reports whether a task is part of one that waits.
func (l *line) within(t task) bool {
	for bits := range t.within.bits {
		if l.lengths[bits] == 0 {
			continue
		}
		if _, is := l.waiting[task{place{t.within.at.masked(bits), bits}, reachInside}]; is {
			return true
		}
	}
	return false
}

// begin takes the next task, if there is one. It skips tasks that are part of a later one.
func (l *line) begin() *review {
	for l.now == nil && len(l.tasks) > 0 {
		t := l.tasks[0]
		if l.tasks = l.tasks[1:]; t.reach == reachInside {
			l.lengths[t.within.bits]--
		}
		if delete(l.waiting, t); !l.within(t) {
			l.now = &review{task: t, from: strongest(t.within)}
		}
	}
	return l.now
}

// next returns the queue whose turn it is; nil when there are no tasks.
func (r *reviews) next() *line {
	switch {
	case r.own.any():
		return &r.own
	case len(r.lines) > 0:
		return r.lines[0]
	}
	return nil
}

// served moves the queue to the end after its turn.
func (r *reviews) served(l *line) {
	if l == &r.own {
		return
	}
	if r.lines = r.lines[1:]; l.any() {
		r.lines = append(r.lines, l)
	} else {
		delete(r.of, l.cluster)
	}
}

// resume does the next tasks of one cluster for a while, and reports whether there is more to do.
func (c *core) resume() (more bool) {
	l := c.reviews.next()
	if l == nil {
		return false
	}
	for units := reviewed; units > 0 && l.begin() != nil; {
		done := false
		if units, done = c.proceed(l.now, units); done {
			l.now = nil
		}
	}
	c.reviews.served(l)
	return c.reviews.any()
}
