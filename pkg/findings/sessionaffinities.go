package findings

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// affinities finds services that clusters export with different session affinities. Only exports through the MCS API
// have these (wire.md §1.5). Hundreds of clusters may export the same services, so only a hash of each export is kept.
// When the hashes of a service differ, its exports are read from the table.
type affinities struct {
	find      func(namespace, name string) []*services.Export // those of all clusters, in any order
	seed      maphash.Seed
	said      map[uint64]uint64           // of each export: the hash of its affinity
	tally     map[string]map[uint64]int   // by the service's full name: how many exports have which hash
	touched   map[string]*services.Export // by full name: a changed export, where the affinities differ or differed
	conflicts *conflictSet
}

func newAffinities(find func(namespace, name string) []*services.Export) *affinities {
	return &affinities{
		find: find, seed: maphash.MakeSeed(),
		said: make(map[uint64]uint64), tally: make(map[string]map[uint64]int), touched: make(map[string]*services.Export), conflicts: newConflictSet(),
	}
}

// set takes in an export after a change or its deletion.
func (d *affinities) set(e *services.Export, deleted bool) {
	at, name := maphash.Comparable(d.seed, [3]string{e.Cluster, e.Namespace, e.Name}), e.FullName()
	if old, known := d.said[at]; known {
		d.count(name, old, -1)
		delete(d.said, at)
	}
	if !deleted {
		d.said[at] = maphash.Comparable(d.seed, affinity{e.Affinity, e.Timeout})
		d.count(name, d.said[at], 1)
	}
	if len(d.tally[name]) > 1 || d.conflicts.has(key(KindServiceAffinity, name)) {
		d.touched[name] = e
	}
}

// affinity is the part that must be equal in all exports.
type affinity struct {
	kind    string
	timeout time.Duration
}

// count changes the number of a service's exports that have a hash.
func (d *affinities) count(service string, says uint64, n int) {
	of := d.tally[service]
	if of == nil {
		of = make(map[uint64]int, 1)
		d.tally[service] = of
	}
	if of[says] += n; of[says] == 0 {
		delete(of, says)
	}
	if len(of) == 0 {
		delete(d.tally, service)
	}
}

// look judges the services whose exports have changed since the last look, if these differ or differed.
func (d *affinities) look(v *verdicts) {
	for name, e := range d.touched {
		d.conflicts.set(key(KindServiceAffinity, name), affinityConflict(d.find(e.Namespace, e.Name)), v)
	}
	clear(d.touched)
	d.conflicts.judgeMore(func(key string) {
		namespace, name, _ := strings.Cut(subjectOf(key), "/")
		if exports := d.find(namespace, name); len(exports) > 0 {
			d.touched[subjectOf(key)] = exports[0]
		}
	})
}

// affinityConflict returns the conflict between exports of a service; nil when they agree.
func affinityConflict(exports []*services.Export) *Conflict {
	if !services.AffinitiesDiffer(exports) {
		return nil
	}
	services.SortExports(exports)
	first := exports[0]
	c := &Conflict{
		Kind: KindServiceAffinity, Code: codes.ServiceAffinityConflict, Subject: first.FullName(), Rule: affinityRule(exports),
	}
	by := make(map[string][]string) // clusters by affinity
	var said []string               // in the order of the exports
	for _, e := range exports {
		c.Clusters = append(c.Clusters, e.Cluster)
		text := e.SessionAffinity()
		if by[text] == nil {
			said = append(said, text)
		}
		by[text] = append(by[text], e.Cluster)
	}
	c.Message = fmt.Sprintf("%s: the session affinity of its exports is %s; that of %s counts in clusters that do not export it. Give the service the same affinity and timeout in each cluster",
		c.Subject, printer.Join(said, ", ", func(text string) string { return text + " in " + list(by[text]) }), first.Cluster)
	return c
}

// affinityRule returns why the first of these exports wins over those that disagree with it.
func affinityRule(exports []*services.Export) string {
	first, rival := exports[0], exports[0]
	for _, e := range exports {
		if e.SessionAffinity() != first.SessionAffinity() {
			rival = e
			break
		}
	}
	at := first.Created.Format(time.RFC3339)
	if rival.Created.Equal(first.Created) {
		return fmt.Sprintf("where the own cluster exports nothing, of exports that are equally old (%s) that of the first name counts, %s before %s", at, first.Cluster, rival.Cluster)
	}
	return fmt.Sprintf("where the own cluster exports nothing, the oldest export counts: %s has one since %s, %s since %s", first.Cluster, at, rival.Cluster, rival.Created.Format(time.RFC3339))
}
