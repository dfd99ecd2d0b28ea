package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Listed is how many conflicts of one kind are listed for a cluster. A cluster can claim every address of another one:
// that is one mistake, or one attack. A conflict is listed when at least one of its clusters has fewer than this. Of
// the others only the keys are kept; they are listed when there is room.
const Listed = 200

// conflictSet is the conflicts that a detector has found.
type conflictSet struct {
	listed map[string]*Conflict               // by key
	room   map[inPart]int                     // how many are listed
	hidden map[Kind]map[string]*unlistedGroup // the conflicts that are not listed, by their clusters
	dirty  bool                               // hidden has changed since the last look
}

// inPart identifies a cluster's part in the conflicts of a kind.
type inPart struct {
	kind    Kind
	cluster string
}

// unlistedGroup is the unlisted conflicts of one kind between the same clusters.
type unlistedGroup struct {
	clusters []string
	keys     map[string]struct{}
}

func newConflictSet() *conflictSet {
	return &conflictSet{listed: make(map[string]*Conflict), room: make(map[inPart]int), hidden: make(map[Kind]map[string]*unlistedGroup)}
}

// set stores the present conflict of a subject, nil for none.
func (b *conflictSet) set(key string, c *Conflict, v *verdicts) {
	old := b.listed[key]
	if old == nil && len(b.hidden) > 0 {
		b.forget(key)
	}
	switch {
	case c != nil && old == nil && b.free(c.Kind, c.Clusters) <= 0:
		b.hide(key, c)
	case c != nil && (old == nil || !old.says(c)):
		b.count(old, -1)
		b.count(c, +1)
		b.listed[key] = c
		v.began = append(v.began, c)
	case c == nil && old != nil:
		b.count(old, -1)
		delete(b.listed, key)
		v.ended = append(v.ended, key)
	}
}

// setAll stores all present conflicts: all other conflicts of the set are over.
func (b *conflictSet) setAll(all []*Conflict, v *verdicts) {
	are := make(map[string]bool, len(all))
	for _, c := range all {
		are[c.Key()] = true
		b.set(c.Key(), c, v)
	}
	for _, key := range b.keys() {
		if !are[key] {
			b.set(key, nil, v)
		}
	}
}

// keys returns the keys of all conflicts, including the unlisted ones.
func (b *conflictSet) keys() []string {
	keys := slices.Collect(maps.Keys(b.listed))
	for _, of := range b.hidden {
		for _, c := range of {
			keys = slices.AppendSeq(keys, maps.Keys(c.keys))
		}
	}
	return keys
}

// has reports whether there is a conflict with this key.
func (b *conflictSet) has(key string) bool { return b.listed[key] != nil || b.groupOf(key) != nil }

// free returns the largest room that one of the clusters has.
func (b *conflictSet) free(k Kind, clusters []string) int {
	most := 0
	for _, name := range clusters {
		most = max(most, Listed-b.room[inPart{k, name}])
	}
	return most
}

func (b *conflictSet) count(c *Conflict, by int) {
	if c == nil {
		return
	}
	for _, name := range c.Clusters {
		part := inPart{c.Kind, name}
		if b.room[part] += by; b.room[part] == 0 {
			delete(b.room, part)
		}
	}
}

// hide stores a conflict that is not listed.
func (b *conflictSet) hide(key string, c *Conflict) {
	of := b.hidden[c.Kind]
	if of == nil {
		of = make(map[string]*unlistedGroup)
		b.hidden[c.Kind] = of
	}
	between := strings.Join(c.Clusters, ",")
	if of[between] == nil {
		of[between] = &unlistedGroup{clusters: c.Clusters, keys: make(map[string]struct{})}
	}
	of[between].keys[key] = struct{}{}
	b.dirty = true
}

// forget removes a key from the unlisted conflicts, if it is there.
func (b *conflictSet) forget(key string) {
	c := b.groupOf(key)
	if c == nil {
		return
	}
	kind := kindOfKey(key)
	if delete(c.keys, key); len(c.keys) == 0 {
		delete(b.hidden[kind], strings.Join(c.clusters, ","))
	}
	if len(b.hidden[kind]) == 0 {
		delete(b.hidden, kind)
	}
	b.dirty = true
}

// groupOf finds the unlisted conflicts that include a key; nil for none.
func (b *conflictSet) groupOf(key string) *unlistedGroup {
	for _, c := range b.hidden[kindOfKey(key)] {
		if _, is := c.keys[key]; is {
			return c
		}
	}
	return nil
}

func kindOfKey(key string) Kind {
	kind, _, _ := strings.Cut(key, "/")
	return Kind(kind)
}

// subjectOf returns the second half of a key.
func subjectOf(key string) string {
	_, subject, _ := strings.Cut(key, "/")
	return subject
}

// judgeMore calls judge again for subjects of unlisted conflicts that there is room for now: those that still exist
// become listed.
func (b *conflictSet) judgeMore(judge func(key string)) {
	var keys []string
	for kind, of := range b.hidden {
		for _, c := range of {
			free := b.free(kind, c.clusters)
			for key := range c.keys {
				if free--; free < 0 {
					break
				}
				keys = append(keys, key)
			}
		}
	}
	for _, key := range keys {
		judge(key)
	}
}

// unlisted returns one conflict for each kind, with the number of conflicts that some sets do not list, and their
// clusters.
func unlisted(sets ...*conflictSet) []*Conflict {
	var all []*Conflict
	for _, kind := range Kinds() {
		n, clusters := 0, []string(nil)
		for _, b := range sets {
			for _, c := range b.hidden[kind] {
				n += len(c.keys)
				clusters = append(clusters, c.clusters...)
			}
		}
		if n == 0 {
			continue
		}
		slices.SortFunc(clusters, natural.Compare)
		clusters = slices.Compact(clusters)
		all = append(all, &Conflict{
			Kind: kind, Code: codes.MoreConflicts, Subject: "more", Clusters: clusters, More: n,
			Message: fmt.Sprintf("%d more conflicts of kind %s, of %s, are not listed: each cluster has %d that are. When these are resolved others take their place",
				n, kind, list(clusters), Listed),
		})
	}
	return all
}
