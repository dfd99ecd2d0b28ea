package simulate

import (
	"bytes"
	"fmt"
	"sync"
	"time"
)

// flaps finds keys that their writer deletes and writes again with the same value, although no object has changed and
// nothing has happened to the kvstores: readers withdraw backends and addresses meanwhile.
type flaps struct {
	mu      sync.Mutex
	faults  trouble   // faults of the cluster that writers notice
	reading trouble   // those of them that readers notice as well
	full    time.Time // since when there are faults that only writers notice; zero: there are none
	asked   time.Time // the last operation of the workload
	started time.Time // the agent
	isDown  bool      // the agent, for some time
}

// trouble is faults.
type trouble struct {
	active map[string]bool // those that last
	last   time.Time       // when one began or ended last
}

func newTrouble() trouble { return trouble{active: make(map[string]bool)} }

func (t *trouble) step(name string, lasts bool) {
	t.last = time.Now()
	delete(t.active, name)
	if lasts {
		t.active[name] = true
	}
}

// isOver reports whether no fault was active, from some time before a time until now.
func (t *trouble) isOver(at time.Time) bool {
	return len(t.active) == 0 && at.Sub(t.last) > afterFaults
}

// The times after which a cluster counts as undisturbed. Keys of a crashed agent last as long as their leases, within
// which the next agent has to take them over.
const (
	afterFaults = 3 * time.Minute
	afterStart  = time.Minute // a crashed agent keeps its locks for some time
	afterAsking = 5 * time.Second
)

func (f *flaps) step(s Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, ends := cutEnding(s.Do)
	one, is := faultOf(name)
	lasts := !ends && one.end != nil
	switch {
	case !is:
		f.asked = time.Now()
	case one.disturbs == onlyAgent: // see started
		f.isDown = lasts
	case one.disturbs != onlyOthers:
		f.faults.step(name, lasts)
		f.stepOfReading(one, lasts)
	}
}

// stepOfReading notes a fault for readers. mu is held.
func (f *flaps) stepOfReading(one fault, lasts bool) {
	switch {
	case one.disturbs != onlyWriters:
		f.reading.step(one.name, lasts)
	case lasts && f.full.IsZero():
		f.full = time.Now()
	case len(f.faults.active) == len(f.reading.active):
		if f.reading.last.After(f.full) { // lost keys are written again only now
			f.reading.last = time.Now()
		}
		f.full = time.Time{}
	}
}

// fault notes that something has happened that is not a step.
func (f *flaps) fault() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults.last = time.Now()
	f.reading.last = f.faults.last
}

func (f *flaps) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = time.Now()
}

// undisturbed reports whether no fault was active, from some time before a time until now.
func (f *flaps) undisturbed(at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults.isOver(at) && at.Sub(f.started) > afterStart
}

// readable reports the same of faults that readers notice.
func (f *flaps) readable(at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reading.isOver(at) && at.Sub(f.started) > afterStart
}

// isWhole reports whether the kvstore has everything that readers need: no fault has made it lose something that its writers could not
// write again yet. It also reports whether it is full.
func (f *flaps) isWhole(now time.Time) (whole, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := now
	if full = !f.full.IsZero(); full {
		since = f.full
	}
	return f.reading.isOver(since) && now.Sub(f.started) > afterStart && !f.isDown, full
}

// calm reports whether the kvstore must have everything that is described: no fault is active, the last one ended so long ago
// that refused writes were tried again, and there was no operation a moment ago.
func (f *flaps) calm(now time.Time) bool {
	return f.undisturbed(now.Add(afterFaults-calmAfter)) && f.unaskedFor(now, late)
}

// unasked reports whether there was no operation of the workload, from some time before a time until now.
func (f *flaps) unasked(at time.Time) bool { return f.unaskedFor(at, afterAsking) }

func (f *flaps) unaskedFor(at time.Time, while time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return at.Sub(f.asked) > while
}

// flap returns an error if the last change of a key is a value that was deleted or written a moment ago, without a reason.
func (of *recorded) flap(name string, undisturbed, unasked func(at time.Time) bool) error {
	all := of.keys[name]
	n := len(all)
	if n >= 2 && all[n-1].value != nil && bytes.Equal(all[n-1].value, all[n-2].value) && undisturbed(all[n-2].from) {
		return fmt.Errorf("%s%s was written again with the same value, and nothing had happened:%s", of.prefix, name, of.describe(name))
	}
	if n < 3 || all[n-2].value != nil || !bytes.Equal(all[n-1].value, all[n-3].value) || all[n-1].from.Sub(all[n-2].from) > time.Minute {
		return nil
	}
	if at := all[n-2].from; !undisturbed(at) || !unasked(at) {
		return nil
	}
	return fmt.Errorf("%s%s was deleted, and %s later written again with the same value, and nothing had happened:%s",
		of.prefix, name, all[n-1].from.Sub(all[n-2].from), of.describe(name))
}
