package simulate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// screen has the texts that a mesh shows, followed change by change, and compares them with the histories of the kvstores
// that it reads: copies in the kvstore of its cluster, or originals. Only keys that have changed, there or here, are
// compared.
type screen struct {
	c      *cluster
	m      *mesh.Mesh
	copies bool

	mu         sync.Mutex // guards everything below
	nodes      *tables.Follower[*nodes.Node]
	services   *tables.Follower[*services.Service]
	slices     *tables.Follower[*services.Slice]
	identities *tables.Follower[*identities.Identity]
	addresses  uint64 // the revision up to which they are known
	changes    []ipcache.Change
	families   map[familyOf]*shownFamily
	closed     bool
}

// familyOf names a family of a cluster.
type familyOf struct {
	cluster string
	r       wire.Resource
}

// shownFamily has the texts of a family, by the rest of the key.
type shownFamily struct {
	in     *history // of the kvstore that it is read from
	of     *recorded
	texts  map[string]string
	at     map[string]int // the first version, in the order of the history, that the key can have reached
	doubts *doubts
}

// newScreen returns the screen of a mesh that does not run yet.
func newScreen(c *cluster, m *mesh.Mesh, copies bool) (*screen, error) {
	s := &screen{c: c, m: m, copies: copies, changes: make([]ipcache.Change, 256), families: make(map[familyOf]*shownFamily)}
	var errs [4]error
	t := m.Tables
	s.nodes, errs[0] = tables.Follow(t.DB, t.Nodes.Table())
	s.services, errs[1] = tables.Follow(t.DB, t.Services.Exported())
	s.slices, errs[2] = tables.Follow(t.DB, t.Services.Slices())
	s.identities, errs[3] = tables.Follow(t.DB, t.Identities.Table())
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for _, of := range c.w.clusters {
		in := of.history
		if copies {
			in = c.history
		}
		for _, r := range model.Families() {
			isCopy := copies && of != c
			f := &shownFamily{in: in, of: in.of(r, of.Own.Name, isCopy), texts: make(map[string]string), at: make(map[string]int), doubts: newDoubts()}
			s.families[familyOf{of.Own.Name, r}] = f
		}
	}
	return s, nil
}

// follow judges the mesh, and something else, after each change of its data, until ctx ends.
func (s *screen) follow(ctx context.Context, besides func()) {
	for ctx.Err() == nil {
		s.look()
		besides()
		changed := s.changed()
		select {
		case <-ctx.Done():
		case <-changed[0]:
		case <-changed[1]:
		case <-changed[2]:
		case <-changed[3]:
		case <-changed[4]:
		}
	}
}

// changed returns channels of which one is closed when there is more than at the last look.
func (s *screen) changed() [5]<-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [...]<-chan struct{}{
		s.m.Tables.IPs.Changed(s.addresses), s.nodes.Changed(), s.services.Changed(), s.slices.Changed(), s.identities.Changed(),
	}
}

// close ends the followers. It must be called, in the bubble.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.nodes.Close()
	s.services.Close()
	s.slices.Close()
	s.identities.Close()
}

// look judges the claims of the mesh. The statuses are read first: the data, which are read later, may only be newer.
func (s *screen) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	statuses := s.m.ClustersByName()
	s.update()
	taken := time.Now()
	isUndisturbed := s.c.isUndisturbed
	if !s.copies {
		isUndisturbed = s.c.isReadable // a change that was written must arrive
	}
	for _, st := range statuses {
		must := !s.copies && s.c.mustBeCurrent(st.Name, taken)
		for _, r := range model.Families() {
			freshness := st.Families[r].Freshness
			if st.Families[r].Over != 0 { // not all of its keys are shown
				s.c.w.seen.note(exceeded)
				continue
			}
			if must && !isCurrent(freshness, taken) && s.stays(st.Name) {
				s.c.w.found(fmt.Errorf("%s %s: nothing disturbs a reader, and the %s of %s are %s",
					s.c.Own.Name, clock(taken), r, st, freshness))
			}
			if freshness.AsOf.IsZero() || !s.copies && s.c.w.named(st.Name).lies.since(freshness.AsOf) {
				continue
			}
			s.c.w.judge.counts(freshness)
			isLate := func(at time.Time) bool {
				return taken.Sub(at) > late+s.delay(st.Name, r) && isUndisturbed(st.Name, at)
			}
			if wrong := s.families[familyOf{st.Name, r}].claim(freshness, taken, isLate); wrong != "" && s.stays(st.Name) {
				s.c.w.found(fmt.Errorf("%s %s (copies: %t): the %s of %s are %s, and %s",
					s.c.Own.Name, clock(taken), s.copies, r, st.Name, freshness, wrong))
			}
		}
	}
}

// stays reports whether a cluster is still read: the data of one that is removed vanish.
func (s *screen) stays(cluster string) bool {
	st, is := s.m.ClustersByName()[cluster]
	return is && st.State != remotecluster.Removing
}

// update follows the tables to their present state.
func (s *screen) update() {
	txn := s.m.Tables.DB.ReadTxn()
	s.nodes.DrainTo(txn, func(o *nodes.Node, gone bool) { s.show(o, gone) })
	s.services.DrainTo(txn, func(o *services.Service, gone bool) { s.show(o, gone) })
	s.slices.DrainTo(txn, func(o *services.Slice, gone bool) { s.show(o, gone) })
	s.identities.DrainTo(txn, func(o *identities.Identity, gone bool) { s.show(o, gone) })
	for {
		some, ok := s.m.Tables.IPs.Since(s.addresses, s.changes)
		if !ok {
			panic("simulate: so many changes of addresses at once were not expected")
		}
		if len(some) == 0 {
			return
		}
		for _, change := range some {
			s.lookup(change)
		}
		s.addresses += uint64(len(some))
	}
}

func (s *screen) show(object any, gone bool) {
	if cluster, r, name, text, ok := model.Seen(object); ok {
		if gone {
			text = ""
		}
		s.set(familyOf{cluster, r}, name, text)
	}
}

// lookup reads the claims on a prefix again.
func (s *screen) lookup(change ipcache.Change) {
	p := change.Prefix()
	if !p.IsSingleIP() {
		return
	}
	name := p.Addr().String()
	claims := make(map[string]string)
	for _, e := range s.m.Tables.IPs.Lookup(p.Addr()).Claims {
		if cluster, _, of, text, ok := model.Seen(e); ok && of == name {
			claims[cluster] = text
		}
	}
	for _, of := range s.c.w.clusters {
		s.set(familyOf{of.Own.Name, wire.IPs}, name, claims[of.Own.Name])
	}
}

func (s *screen) set(of familyOf, name, text string) {
	f := s.families[of]
	if f.texts[name] == text {
		return
	}
	var lies *lies // copies are what their kvstore has
	if !s.copies {
		lies = &s.c.w.named(of.cluster).lies
	}
	if versions := f.goesBack(name, text, lies); versions != "" {
		s.c.w.found(fmt.Errorf("%s %s (copies: %t): the %s of %s go back: %s was %q, and is %q again:%s",
			s.c.Own.Name, clock(time.Now()), s.copies, of.r, of.cluster, name, f.texts[name], text, versions))
	}
	if f.texts[name] = text; text == "" {
		delete(f.texts, name)
	}
	f.doubts.names[name] = struct{}{}
}

// goesBack returns the last versions of a key if a text is that of an earlier one than one that was shown; empty: it is not.
// Versions before the last lie do not count. The data of a cluster that is removed vanish, so that a key is not
// shown is no version.
func (f *shownFamily) goesBack(name, text string, lies *lies) string {
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	all, earlier := f.of.keys[name], false
	for i := range all {
		if text == "" || lies != nil && lies.since(all[i].from) || f.of.show(name, &all[i]) != text {
			continue
		}
		if earlier = true; i >= f.at[name] {
			f.at[name] = i
			return ""
		}
	}
	if !earlier {
		return ""
	}
	return f.of.describe(name)
}

// count returns how many keys of a family are shown.
func (s *screen) count(of familyOf) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update()
	return len(s.families[of].texts)
}

// delay is how long changes of a family are held back: the deletions of own nodes are, since a node may return.
func (s *screen) delay(cluster string, r wire.Resource) time.Duration {
	if cluster == s.c.Own.Name && (r == wire.Nodes || r == wire.IPs) {
		return clustermesh.NodeDelay
	}
	return 0
}

// claim judges that a family is known as of a time: each key is shown with a value that it had since, and its last change
// is not late. It returns the first key for which this does not hold; empty: there is none.
func (f *shownFamily) claim(freshness remotecluster.Freshness, taken time.Time, isLate func(at time.Time) bool) string {
	f.doubts.addChanges(f.in, f.of)
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
next:
	for name := range f.doubts.names {
		text, latest := f.texts[name], f.of.latest(name)
		if f.of.mayShow(name, latest, text) {
			delete(f.doubts.names, name)
			continue
		}
		if isLate(latest.from) {
			return fmt.Sprintf("%s is still shown as %q %s after its last change:%s", name, text, taken.Sub(latest.from), f.of.describe(name))
		}
		for v := range f.of.between(name, freshness.AsOf, taken) {
			if f.of.mayShow(name, v, text) {
				continue next
			}
		}
		return fmt.Sprintf("%s, %s after that, is shown as %q, which it was not:%s", name, taken.Sub(freshness.AsOf), text, f.of.describe(name))
	}
	return ""
}

// describe returns the last versions of a key.
func (of *recorded) describe(name string) string {
	var b strings.Builder
	all := of.keys[name]
	for i := max(0, len(all)-4); i < len(all); i++ {
		fmt.Fprintf(&b, "\n  from %s: %q", clock(all[i].from), of.show(name, &all[i]))
	}
	return b.String()
}

// clock is a time of the bubble, to the millisecond.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
