package simulate

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// flaps finds keys that their writer deletes and writes again with the same value, although no object has changed and
// nothing has happened to the kvstores: readers withdraw backends and addresses meanwhile.
type flaps struct {
	mu      sync.Mutex
	active  map[string]bool // faults of the cluster that last
	faulted time.Time       // when a fault began or ended last
	asked   time.Time       // the last operation of the workload
	started time.Time       // the agent
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
	switch one, is := faultOf(name); {
	case !is:
		f.asked = time.Now()
	case name == "stop" || name == "crash" || name == "kill" || name == "torn" || name == "unsaved": // see started
	case strings.HasPrefix(name, "api-"): // no kvstore notices
	default:
		f.faulted = time.Now()
		f.active[name] = !ends && one.end != nil
	}
}

// fault notes that something has happened that is not a step.
func (f *flaps) fault() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faulted = time.Now()
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
	for _, lasts := range f.active {
		if lasts {
			return false
		}
	}
	return at.Sub(f.faulted) > afterFaults && at.Sub(f.started) > afterStart
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
