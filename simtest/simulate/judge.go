package simulate

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// judge compares what programs show with the histories of the kvstores.
type judge struct {
	w *world

	mu     sync.Mutex // guards claims
	claims map[remotecluster.FreshnessState]int
}

func newJudge(w *world) *judge {
	return &judge{w: w, claims: make(map[remotecluster.FreshnessState]int)}
}

// counts counts a claim that was judged.
func (j *judge) counts(f remotecluster.Freshness) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.claims[f.State]++
}

// look judges the claims of the programs of a cluster.
func (j *judge) look(c *cluster) {
	if !c.isRunning() {
		return
	}
	for _, s := range c.screens {
		s.look()
	}
	c.copied.look()
	if c.flaps.calm(time.Now()) {
		j.w.seen.note(calmly)
		if wrong := c.unpublished(false); wrong != "" {
			j.w.found(fmt.Errorf("%s %s after the last operation of the workload, long after the last fault, there is %s", clock(time.Now()), late, wrong))
		}
		c.allocation.mend(apps(c.described()))
	}
}

// calmAfter is the time after the last fault in which everything has to be equal: leases of 5 minutes end.
const calmAfter = 7 * time.Minute

// late is how long a change may take when nothing is wrong with either cluster. It takes milliseconds.
const late = 10 * time.Second

// copied is what a mirror has copied, followed change by change.
type copied struct {
	c      *cluster
	mu     sync.Mutex
	doubts map[familyOf]*doubts // guarded by mu
}

func newCopied(c *cluster) *copied {
	m := &copied{c: c, doubts: make(map[familyOf]*doubts)}
	for _, of := range c.w.clusters {
		for _, r := range model.Families() {
			m.doubts[familyOf{of.Own.Name, r}] = newDoubts()
		}
	}
	return m
}

// look judges the claims of a mirror: since the time of the claim the copy had, for each key, a value that the original
// had since then. The own kvstore may have lost it a moment ago.
func (m *copied) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, st := range m.c.Mirrored() {
		for _, r := range model.Families() {
			family := st.Families[r]
			asOf, of := family.Freshness.AsOf, m.c.w.named(st.Name)
			if asOf.IsZero() || !family.Synced || family.Over != 0 || of.lies.since(asOf) {
				continue
			}
			m.c.w.judge.counts(family.Freshness)
			if wrong := m.claim(of, r, asOf, st.State != remotecluster.Removing); wrong != "" {
				m.c.w.found(fmt.Errorf("%s %s: the mirror says that the %s of %s are %s, and %s",
					m.c.Own.Name, clock(time.Now()), r, st.Name, family.Freshness, wrong))
			}
		}
	}
}

// claim returns the key that shows that the copy of a family is not as new as this; empty: it is. Changes that are not copied
// soon count only while the cluster stays.
func (m *copied) claim(of *cluster, r wire.Resource, asOf time.Time, stays bool) string {
	original, copies := of.history.of(r, of.Own.Name, false), m.c.history.of(r, of.Own.Name, true)
	d := m.doubts[familyOf{of.Own.Name, r}]
	d.addChanges(of.history, original)
	d.addChanges(m.c.history, copies)
	for name := range d.names {
		have, want := m.c.history.values(copies, name, asOf), of.history.values(original, name, asOf)
		if have[len(have)-1] == want[len(want)-1] {
			delete(d.names, name)
			continue
		}
		if at := of.history.changed(original, name); stays && time.Since(at) > late && m.c.isUndisturbed(of.Own.Name, at) {
			return fmt.Sprintf("%s after the last change of %s it still has %q, not %q", time.Since(at), name, have[len(have)-1], want[len(want)-1])
		}
		if !slices.ContainsFunc(have, func(value string) bool { return slices.Contains(want, value) }) {
			return fmt.Sprintf("has %q for %s, where the original has %q since then", have, name, want)
		}
	}
	return ""
}

// rest returns a description of a difference between the world and the one that must follow once nothing changes, or nil
// when there is none: each kvstore has the described keys, each view equals the model of the kvstores, each copy its original,
// and DNS answers with all backends.
func (j *judge) rest() (describe func() string) {
	for _, c := range j.w.clusters {
		if wrong := c.unpublished(true); wrong != "" {
			return func() string { return wrong }
		}
	}
	for _, c := range j.w.clusters {
		for _, o := range j.w.clusters {
			for _, r := range model.Families() {
				want, got := o.history.now(o.history.of(r, o.Own.Name, false)), c.history.now(c.history.of(r, o.Own.Name, true))
				if o != c && !maps.EqualFunc(want, got, bytes.Equal) {
					return func() string {
						return fmt.Sprintf("the copies of the %s of %s in the kvstore of %s (-original +copy):\n%s", r, o.Own.Name, c.Own.Name, gocmp.Diff(want, got))
					}
				}
			}
		}
	}
	var all []model.Contents
	for _, c := range j.w.clusters {
		all = append(all, c.contents())
	}
	for i, c := range j.w.clusters {
		others := slices.Concat(all[:i], all[i+1:])
		for _, v := range []struct {
			whose string
			want  model.Picture
			got   *mesh.Mesh
		}{
			{"the view of " + c.Own.Name, model.Of(all, 0, c.Own.Name), c.Mesh},
			{"the view of the program of " + c.Own.Name, model.Of(others, 0), c.Direct},
		} {
			if got := model.Look(v.got.Tables.Tables, model.Hidden{}).Picture; !maps.Equal(v.want, got) {
				return func() string { return fmt.Sprintf("%s (-model +view):\n%s", v.whose, gocmp.Diff(v.want, got)) }
			}
		}
	}
	wrong := j.servers(all)
	for _, c := range j.w.clusters {
		wrong = cmp.Or(wrong, c.old())
		for _, r := range c.readers {
			wrong = cmp.Or(wrong, r.difference())
		}
		for _, f := range c.clients {
			wrong = cmp.Or(wrong, f.difference())
		}
	}
	if wrong != "" {
		return func() string { return wrong }
	}
	return nil
}

// current is how old the data of a program may be while nothing is wrong: it asks each 10 seconds, and the deletion of an own
// node is held back for 30.
const current = time.Minute

func isCurrent(f remotecluster.Freshness, now time.Time) bool {
	return f.State == remotecluster.FreshnessSynced && now.Sub(f.AsOf) <= current
}

// old returns a resource that a program of the cluster knows as of an earlier time than it must; empty: there is none.
func (c *cluster) old() string {
	for whose, all := range map[string][]remotecluster.Status{"view": c.Mesh.Clusters(), "program": c.Direct.Clusters(), "mirror": c.Mirrored()} {
		if len(all) != len(c.w.clusters)-1 {
			return fmt.Sprintf("the %s of %s has %d other clusters", whose, c.Own.Name, len(all))
		}
		for _, st := range all {
			for _, r := range model.Families() {
				if f := st.Families[r].Freshness; !isCurrent(f, time.Now()) {
					return fmt.Sprintf("the %s of %s knows the %s of %s as %s", whose, c.Own.Name, r, st, f)
				}
			}
		}
	}
	return ""
}

// contents are the values in force of a cluster.
func (c *cluster) contents() model.Contents {
	all := model.Contents{Name: c.Own.Name, ID: c.Own.ID, Values: make(map[string][]byte)}
	for _, r := range model.Families() {
		prefix := r.Prefix(c.Own.Name, false)
		for name, value := range c.history.now(c.history.of(r, c.Own.Name, false)) {
			all.Values[prefix+name] = value
		}
	}
	return all
}

// servers compares the answers of DNS, and the EndpointSlices of remote backends, with the backends of the services in the
// kvstores.
func (j *judge) servers(all []model.Contents) string {
	want, shared := make(map[string][]string), make(map[string]map[string][]string)
	for _, c := range all {
		prefix := wire.Services.Prefix(c.Name, false)
		for key, value := range c.Values {
			name, is := strings.CutPrefix(key, prefix)
			if !is {
				continue
			}
			s, err := wire.DecodeService(name, value, model.Expect(c.Name, c.ID, 0))
			if err != nil || !s.Shared {
				continue
			}
			if shared[name] == nil {
				shared[name] = make(map[string][]string)
			}
			shared[name][c.Name] = slices.Sorted(maps.Keys(s.Backends))
			want[name] = append(want[name], shared[name][c.Name]...)
		}
	}
	for _, c := range j.w.clusters {
		if wrong := c.remote.difference(shared); wrong != "" {
			return wrong
		}
		for i := range j.w.objects.Services {
			local := fmt.Sprint("s", i)
			name := full(local)
			got, _ := c.Resolve(local + "." + namespaceOf(local) + ".svc.clusterset.local") // an error: no addresses
			slices.Sort(got)
			slices.Sort(want[name])
			if !slices.Equal(got, want[name]) {
				return fmt.Sprintf("DNS of %s answers for %s with %s, not with %s", c.Own.Name, name, got, want[name])
			}
		}
		for _, s := range c.subscribers {
			if wrong := s.difference(want); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}
