package findings

import (
	"fmt"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// backends finds the remote clusters with service backends that break a rule: one
// conflict for each cluster and rule, however many there are.
type backends struct {
	of        map[string][]strayBackends // by the service's full name; only services that have some
	dirty     bool                       // of has changed since the last look
	conflicts *conflictSet
}

// strayBackends is the backends of one cluster in one service that break one rule.
type strayBackends struct {
	cluster string
	services.Stray
}

// set stores the present state of a service.
func (d *backends) set(g *services.Global, deleted bool) {
	name := g.FullName()
	var now []strayBackends
	if !deleted {
		for _, p := range g.Parts {
			for _, s := range p.Strays() {
				now = append(now, strayBackends{p.Cluster, s})
			}
		}
	}
	if slices.Equal(now, d.of[name]) {
		return
	}
	if d.of[name], d.dirty = now, true; now == nil {
		delete(d.of, name)
	}
}

// look counts the backends again after a change.
func (d *backends) look(v *verdicts) {
	if !d.dirty {
		return
	}
	d.dirty = false
	type part struct {
		cluster string
		rule    uint8
	}
	type tally struct {
		backends, services int
		example            string // the first service
	}
	tallies := make(map[part]tally)
	for name, strays := range d.of {
		for _, s := range strays {
			key := part{s.cluster, s.Rule}
			t := tallies[key]
			if t.services == 0 || name < t.example {
				t.example = name
			}
			t.backends += s.Backends
			t.services++
			tallies[key] = t
		}
	}
	var all []*Conflict
	for key, t := range tallies {
		i := slices.IndexFunc(d.of[t.example], func(s strayBackends) bool { return s.cluster == key.cluster && s.Rule == key.rule })
		all = append(all, backendConflict(d.of[t.example][i], t.example, t.backends, t.services))
	}
	d.conflicts.setAll(all, v)
}

// backendConflict returns the conflict for the backends of a cluster that break a rule. Its message has only rough
// numbers: the exact ones may change with every batch.
func backendConflict(example strayBackends, service string, backends, in int) *Conflict {
	rule, name := ipcache.Rule(example.Rule).Info(), example.cluster
	effect := "the agent uses such backends, as Cilium does, unless --claim-policy=enforce is set"
	if example.Barred {
		effect = "the agent does not use such backends"
	}
	return &Conflict{
		Kind: KindClaim, Code: rule.Backends, Subject: name + "/backends-" + rule.Topic, Clusters: []string{name}, Rule: rule.Text,
		Message: fmt.Sprintf("%s in %s of %s %s, such as %s of %s: %s; %s",
			roughly(backends, "backend"), roughly(in, "service"), name, predicate(rule, backends), example.Example, service, example.Why, effect),
	}
}
