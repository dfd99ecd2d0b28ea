package simulate

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agents"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// history is what a kvstore had when.
type history struct {
	foreign  atomic.Bool // another client writes, which does not mean what it writes
	mu       sync.Mutex
	families []*recorded
	// meanings are the values that the identities of the cluster had, by key, and broken the first one with two.
	meanings map[string]string
	broken   error
}

// recorded is the history of the keys of a family of a cluster; the mutex of the history guards it.
type recorded struct {
	prefix string
	r      wire.Resource
	of     wire.Expect
	keys   map[string][]version // by the rest of the key; ordered by time
	order  []string             // the rest of the key of each change
	// reuses: the nodes of the cluster allocate the numbers of identities, so a collected number can get other labels.
	reuses bool
}

// version is the value of a key from a time on; nil: the key was absent.
type version struct {
	from  time.Time
	value []byte
	text  string // what a mesh shows of it, once that was asked for
	// refused: the value is not acceptable. A mesh that has an earlier value shows that.
	refused bool
	read    bool
}

// newHistory returns the history of a kvstore that has no contents yet: that of a cluster, with copies of others.
func newHistory(cluster *agents.Cluster, all []*agents.Cluster) *history {
	h := &history{meanings: make(map[string]string)}
	add := func(c *agents.Cluster, copies bool) {
		of := c.Own
		for _, r := range model.Families() {
			h.families = append(h.families, &recorded{
				prefix: r.Prefix(of.Name, copies), r: r, of: model.Expect(of.Name, of.ID, 0), keys: make(map[string][]version), reuses: len(c.Members) > 0,
			})
		}
	}
	add(cluster, false)
	for _, of := range all {
		add(of, true)
	}
	return h
}

// of returns the history of a family.
func (h *history) of(r wire.Resource, cluster string, copies bool) *recorded {
	prefix := r.Prefix(cluster, copies)
	return h.families[slices.IndexFunc(h.families, func(of *recorded) bool { return of.r == r && of.of.Cluster == cluster && of.prefix == prefix })]
}

// record adds changes; none: everything was lost. The error is a flap at a time when nothing has happened to the cluster.
func (h *history) record(changes []kvstore.Event, c *cluster) (wrong error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if len(changes) == 0 {
		for _, of := range h.families {
			for name, versions := range of.keys {
				if versions[len(versions)-1].value != nil {
					of.add(name, version{from: now})
				}
			}
		}
	}
	for _, e := range changes {
		key := string(e.Key)
		i := slices.IndexFunc(h.families, func(of *recorded) bool { return strings.HasPrefix(key, of.prefix) })
		if i < 0 {
			continue
		}
		of, one := h.families[i], version{from: now}
		if e.Type == kvstore.EventPut {
			one.value = append([]byte{}, e.Value...)
			if of.r == wire.Identities && !h.foreign.Load() && !of.reuses && (of.of.Cluster == c.Own.Name || !c.w.named(of.of.Cluster).lies.ever()) {
				h.mean(key, string(one.value))
			}
		}
		name := key[len(of.prefix):]
		of.add(name, one)
		wrong = cmp.Or(wrong, of.flap(name,
			func(at time.Time) bool { return c.isUndisturbed(of.of.Cluster, at) },
			func(at time.Time) bool { return c.flaps.unasked(at) && c.w.named(of.of.Cluster).flaps.unasked(at) },
		))
	}
	return wrong
}

func (of *recorded) add(name string, v version) {
	of.keys[name] = append(of.keys[name], v)
	of.order = append(of.order, name)
}

// show returns what a mesh shows of a version; empty when the key is absent.
func (of *recorded) show(name string, v *version) string {
	if !v.read && v.value != nil {
		v.text = model.Text(of.r, name, v.value, of.of)
		v.refused = v.text == ""
	}
	v.read = true
	return v.text
}

// mayShow reports whether a mesh may show a text while a version of a key is in force.
func (of *recorded) mayShow(name string, v *version, text string) bool {
	if is := of.show(name, v); is == text || !v.refused {
		return is == text
	}
	all := of.keys[name]
	i := len(all) - 1
	for i >= 0 && &all[i] != v {
		i--
	}
	for i--; i >= 0 && all[i].value != nil; i-- { // a time can have several versions
		if before := of.show(name, &all[i]); !all[i].refused {
			return before == text
		}
	}
	return false
}

// latest is the last version of a key.
func (of *recorded) latest(name string) *version {
	if all := of.keys[name]; len(all) > 0 {
		return &all[len(all)-1]
	}
	return new(version)
}

// mean notes the labels of an identity. A number that had other labels before has two meanings. In the simulated
// clusters the labels of a number never change.
func (h *history) mean(key, value string) {
	if before, is := h.meanings[key]; is && before != value && h.broken == nil {
		h.broken = fmt.Errorf("%s was %q and is %q", key, before, value)
	}
	h.meanings[key] = value
}

// between iterates over the versions of a key that were in force from one time to another. A change at the very time may
// be visible or not.
func (of *recorded) between(name string, from, to time.Time) iter.Seq[*version] {
	return func(yield func(*version) bool) {
		all := of.keys[name]
		if first := len(all) == 0 || !all[0].from.Before(from); first && !yield(new(version)) {
			return
		}
		for i := range all {
			if all[i].from.After(to) {
				return
			}
			if last := i == len(all)-1; (last || !all[i+1].from.Before(from)) && !yield(&all[i]) {
				return
			}
		}
	}
}

// values returns the values that a key had since a time; the empty text: it was absent.
func (h *history) values(of *recorded, name string, from time.Time) (values []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range of.between(name, from, time.Now()) {
		values = append(values, string(v.value))
	}
	return values
}

// changed returns when a key was changed last; zero: never.
func (h *history) changed(of *recorded, name string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return of.latest(name).from
}

// now returns the present contents of a family, by the rest of the key.
func (h *history) now(of *recorded) map[string][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[string][]byte)
	for name := range of.keys {
		if v := of.latest(name); v.value != nil {
			all[name] = v.value
		}
	}
	return all
}

// doubts are the keys of a family that may have another value elsewhere than in the kvstore.
type doubts struct {
	names map[string]struct{}
	read  map[*recorded]int // how many changes of a history are in names
}

func newDoubts() *doubts {
	return &doubts{names: make(map[string]struct{}), read: make(map[*recorded]int)}
}

// addChanges adds the keys that have changed since the last call.
func (d *doubts) addChanges(h *history, of *recorded) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range of.order[d.read[of]:] {
		d.names[name] = struct{}{}
	}
	d.read[of] = len(of.order)
}

// meaning returns the first identity with two meanings.
func (h *history) meaning() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken
}
