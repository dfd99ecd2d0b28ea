package ipcache

// task is what has to be judged again because a network has another owner, or an
// address another node: claims that count, and then those that do not.
type task struct {
	within place
	reach  reach
}

// reach says which claims are judged again.
type reach uint8

const (
	reachInside    reach = iota // all within a place
	reachPlace                  // those at this very place
	reachEndpoints              // those at this very address that no node makes: few, whatever else is claimed there
)

// covers reports whether what is claimed at a place is to be judged again.
func (t task) covers(p place) bool {
	if t.reach == reachInside {
		return p.inside(t.within)
	}
	return p == t.within
}

// review is a task that was begun.
type review struct {
	task
	from   *Entry // the next claim to be looked at
	barred bool   // the second half
}

// How many claims are judged under one hold of the lock, and as how many of them the
// beginning and the end of a review count.
const (
	reviewed   = 1024
	reviewCost = 8
)

// reviews are what is to be judged again. A cluster can ask for that as often as it changes its
// networks, and for much each time, so each has a line of its own: they are served in rotation, the
// own cluster before all others. What lies within something that is asked for too is done with it.
type reviews struct {
	own    line
	lines  []*line // of the remote clusters that have some, the next one first
	of     map[Cluster]*line
	serial uint64 // how often something was asked for
}

// line is what one cluster has asked for.
type line struct {
	cluster Cluster
	now     *review // what was begun
	tasks   []task  // the next one first; may have some that are not waiting any more
	waiting map[task]struct{}
	lengths [hostBits + 1]int // of those waiting that are about all within a place
}

func newReviews() reviews {
	return reviews{of: make(map[Cluster]*line), own: line{waiting: make(map[task]struct{})}}
}

// ask notes a task that follows from a claim.
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

// any reports whether there is something to do.
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

// begin takes the next task, if there is one. It leaves out those that are part of one
// that came after them.
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

// next is whose turn it is; nil when there is nothing to do.
func (r *reviews) next() *line {
	switch {
	case r.own.any():
		return &r.own
	case len(r.lines) > 0:
		return r.lines[0]
	}
	return nil
}

// served notes that the line had its turn: others go first now.
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

// resume goes on with the reviews for a while, with those of one cluster, and tells
// whether there is more to do.
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
