package identity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Duplicates are labels that nodes use under several numbers.
type Duplicates struct {
	Labels string `json:"labels"`
	// Keep is the number that most nodes use, of several the newest one.
	Keep Used `json:"keep"`
	// Withdraw are the others, by number.
	Withdraw []Used `json:"withdraw"`
}

// Used is a number with the nodes that refer to it.
type Used struct {
	ID    uint64   `json:"id"`
	Nodes []string `json:"nodes"`

	revision int64
}

// FindDuplicates returns the labels that nodes use under several numbers, in order. It is
// pure. Labels that are written in several orders are keys of their own, whose
// writers do not look for each other's: they are no duplicates.
func FindDuplicates(contents *Contents) []Duplicates {
	mappings := make(map[uint64]Mapping, len(contents.Mappings))
	for _, m := range contents.Mappings {
		mappings[m.ID] = m
	}
	used := make(map[string]map[uint64]Used)
	for _, ref := range contents.References {
		m, mapped := mappings[ref.ID]
		if !mapped || wire.Join(m.Key) != ref.Key {
			continue
		}
		if used[m.Key] == nil {
			used[m.Key] = make(map[uint64]Used)
		}
		u := used[m.Key][ref.ID]
		u.ID, u.revision, u.Nodes = ref.ID, m.Revision, append(u.Nodes, ref.Node)
		used[m.Key][ref.ID] = u
	}
	var all []Duplicates
	for _, labels := range slices.Sorted(maps.Keys(used)) {
		if of := used[labels]; len(of) > 1 {
			all = append(all, duplicatesOf(labels, of))
		}
	}
	return all
}

func duplicatesOf(labels string, used map[uint64]Used) Duplicates {
	all := slices.SortedFunc(maps.Values(used), func(a, b Used) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(b.revision, a.revision))
	})
	for _, u := range all {
		slices.Sort(u.Nodes)
	}
	slices.SortFunc(all[1:], func(a, b Used) int { return cmp.Compare(a.ID, b.ID) })
	return Duplicates{Labels: labels, Keep: all[0], Withdraw: all[1:]}
}

// Heal deletes the references of labels to all numbers except the one that is kept, under the lock with which numbers
// are given, and returns what it did: the duplicates as they are then, nil for none. A node whose reference is gone
// takes the number that others have, when it refreshes its keys; garbage collection deletes the unused mappings.
func Heal(ctx context.Context, w kvstore.Writer, paths wire.AllocationPaths, labels string) (*Duplicates, error) {
	lock, err := w.Lock(ctx, paths.Lock(labels))
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	r := &reader{w, paths, &Contents{}}
	if _, err := r.list(ctx, paths.ReferencesOf(labels), func(node string, kv *kvstore.KeyValue) error {
		if strings.Contains(node, "/") {
			return nil // of longer labels
		}
		return r.reference(string(kv.Key[len(paths.References()):]), kv)
	}); err != nil {
		return nil, err
	}
	if err := r.addMissing(ctx); err != nil {
		return nil, err
	}
	for _, t := range FindDuplicates(r.c) {
		if t.Labels == labels {
			return &t, withdraw(ctx, w, paths, t, lock)
		}
	}
	return nil, nil
}

func withdraw(ctx context.Context, w kvstore.Writer, paths wire.AllocationPaths, t Duplicates, lock *kvstore.Lock) error {
	var writes []kvstore.Write
	for _, u := range t.Withdraw {
		for _, node := range u.Nodes {
			writes = append(writes, kvstore.Write{Key: paths.Reference(t.Labels, node), Delete: true})
		}
	}
	for some := range slices.Chunk(writes, kvstore.MaxWrites) {
		if _, err := w.Update(ctx, some, kvstore.Holding(lock)); err != nil {
			return fmt.Errorf("withdrawing references of %s: %w", t.Labels, err)
		}
	}
	return nil
}

// String says who uses the number.
func (u Used) String() string {
	const most = 5
	nodes := u.Nodes
	if len(nodes) > most {
		nodes = append(slices.Clone(nodes[:most]), fmt.Sprintf("%d more", len(nodes)-most))
	}
	return fmt.Sprintf("%d on %s", u.ID, strings.Join(nodes, ", "))
}
