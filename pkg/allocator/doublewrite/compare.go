package doublewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

// Difference is a key whose IDs differ between the sides.
type Difference struct {
	// Key is the text of the key.
	Key string
	// Primary and Secondary are its IDs there, in order; none when it is missing. More than one ID is an error of
	// that side.
	Primary, Secondary []uint64
}

// String describes the difference.
func (d Difference) String() string {
	switch {
	case len(d.Secondary) == 0:
		return fmt.Sprintf("only primary: %d %s", d.Primary, d.Key)
	case len(d.Primary) == 0:
		return fmt.Sprintf("only secondary: %d %s", d.Secondary, d.Key)
	default:
		return fmt.Sprintf("other number: %d primary, %d secondary %s", d.Primary, d.Secondary, d.Key)
	}
}

// Compare lists the mappings of both sides. It returns the differences, in the order of the keys, and the number of
// keys that are equal on both sides. The sides are read one after the other. While allocators work, one side may miss
// a key that was just created or collected, so only a difference that appears twice counts.
func Compare(ctx context.Context, primary, secondary allocator.Backend) (differences []Difference, alike int, err error) {
	first, err := list(ctx, primary)
	if err != nil {
		return nil, 0, fmt.Errorf("listing the primary side: %w", err)
	}
	second, err := list(ctx, secondary)
	if err != nil {
		return nil, 0, fmt.Errorf("listing the secondary side: %w", err)
	}
	keys := maps.Clone(first.ids)
	maps.Copy(keys, second.ids)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		d := Difference{key, slices.Sorted(slices.Values(first.ids[key])), slices.Sorted(slices.Values(second.ids[key]))}
		if slices.Equal(d.Primary, d.Secondary) {
			alike++
			continue
		}
		differences = append(differences, d)
	}
	return differences, alike, nil
}

// copiesAtOnce is how many mappings are copied at the same time.
const copiesAtOnce = 16

// Copy creates every mapping of from that is missing in to, under its ID, and returns how many it created. A mapping
// whose ID is taken there is left alone; [Compare] shows it.
func Copy(ctx context.Context, from, to allocator.Backend) (copied int, err error) {
	all, err := list(ctx, from)
	if err != nil {
		return 0, fmt.Errorf("listing the identities to copy: %w", err)
	}
	var done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(copiesAtOnce)
	for id, key := range all.keys {
		g.Go(func() error {
			created, err := to.AllocateID(ctx, id, key, nil)
			if created {
				done.Add(1)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return int(done.Load()), fmt.Errorf("copying, after %d: %w", done.Load(), err)
	}
	return int(done.Load()), nil
}

// listing has all mappings of a backend at one moment.
type listing struct {
	keys map[uint64]allocator.Key
	ids  map[string][]uint64
	done context.CancelCauseFunc
}

var errListed = errors.New("the list is complete")

// listTimeout bounds a list, because ListAndWatch retries for ever.
const listTimeout = time.Minute

func list(ctx context.Context, b allocator.Backend) (*listing, error) {
	ctx, stop := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("there was no complete list within %s; %s", listTimeout, b.Status()))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &listing{keys: make(map[uint64]allocator.Key), ids: make(map[string][]uint64), done: cancel}
	err := b.ListAndWatch(ctx, l)
	if cause := context.Cause(ctx); !errors.Is(cause, errListed) {
		return nil, cmp.Or(cause, err)
	}
	for id, key := range l.keys {
		l.ids[key.GetKey()] = append(l.ids[key.GetKey()], id)
	}
	return l, nil
}

// OnUpsert implements [allocator.CacheMutations].
func (l *listing) OnUpsert(id uint64, key allocator.Key) { l.keys[id] = key }

// OnDelete implements [allocator.CacheMutations].
func (l *listing) OnDelete(id uint64, _ allocator.Key) { delete(l.keys, id) }

// OnReferencesLost implements [allocator.CacheMutations].
func (l *listing) OnReferencesLost() {}

// OnListDone implements [allocator.CacheMutations].
func (l *listing) OnListDone() { l.done(errListed) }
