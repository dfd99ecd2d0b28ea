package allocator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// References is a [Backend] that returns the nodes that refer to a key. With it, a node whose reference was gone for
// a while takes the ID that others have given to the key meanwhile. Without it, the node keeps its own ID, and the
// key has two.
type References interface {
	// ReferencesOf returns the references of the key, under its lock. The error is [errors.ErrUnsupported] where the
	// underlying store does not have this information.
	ReferencesOf(ctx context.Context, key Key, lock Lock) (Referrers, error)
}

// Referrers are the nodes that refer to a key.
type Referrers struct {
	// Own is the ID that this node's reference has, [NoID] without one.
	Own uint64
	// Others are the references of other nodes, by ID, without IDs that belong to another key.
	Others map[uint64]Referrer
}

// Referrer describes the references of other nodes with one ID.
type Referrer struct {
	Nodes    []string
	Revision int64 // of the last change of the mapping, 0 while it is missing
}

// newer returns the ID of other nodes whose mapping was changed last. If all mappings are missing, it is the least
// ID; if there is no ID, [NoID].
func (r Referrers) newer() (newest uint64) {
	for _, id := range r.numbers() {
		if newest == NoID || r.Others[id].Revision > r.Others[newest].Revision {
			newest = id
		}
	}
	return newest
}

// move gives a key in use here the ID that others have given to it, under its lock. It does so when this node's
// reference was gone, and no other node refers to the ID that the key has here. If another node does, both IDs stay,
// which is reported. The error is [errors.ErrUnsupported] without [References].
func (a *Allocator) move(ctx context.Context, j job, lock Lock) (moved bool, err error) {
	by, can := a.backend.(References)
	if !can {
		return false, errors.ErrUnsupported
	}
	who, err := by.ReferencesOf(ctx, j.key, lock)
	if err != nil {
		return false, err
	}
	id := who.newer()
	if id == NoID && who.Own == NoID {
		if id, err = a.successor(ctx, j, lock); err != nil {
			return false, err
		}
	}
	if id == NoID || id == j.id && len(who.Others) == 1 {
		return false, nil
	}
	_, shared := who.Others[j.id]
	a.with(func(c *core) { can = c.canMove(id) })
	if shared || who.Own == j.id || !can {
		a.report(slog.LevelWarn, "Nodes use a key under two IDs, since a reference and its mapping were gone for a while; see 'mesh-agent identity heal'",
			"code", codes.LabelsInUseTwice, "key", j.key, "id", j.id, "others", who.numbers())
		return false, nil
	}
	held, err := a.backend.AcquireReference(ctx, id, j.key, lock)
	if err == nil && !held { // its mapping is missing: the next node that needs the key writes it again
		if _, err = a.backend.AllocateID(ctx, id, j.key, lock); err == nil {
			held, err = a.backend.AcquireReference(ctx, id, j.key, lock)
		}
	}
	switch {
	case err != nil:
		return false, err
	case !held:
		return false, fmt.Errorf("%w: %d", errLost, id)
	}
	a.with(func(c *core) { moved = c.move(j.text, id) })
	if !moved {
		return false, fmt.Errorf("%w: %d", errInUse, id)
	}
	a.report(slog.LevelWarn, "A key has another ID now: other nodes allocated it while its reference was missing here, and no other node uses the earlier ID",
		"key", j.key, "earlier", j.id, "id", id)
	if a.options.moved != nil {
		a.options.moved(j.key, j.id, id)
	}
	return true, nil
}

// successor returns the ID that the key has instead of its own here, whose mapping was collected while its reference was gone:
// a node that no longer uses the key has allocated it meanwhile. Without that mapping, it returns [NoID].
func (a *Allocator) successor(ctx context.Context, j job, lock Lock) (id uint64, err error) {
	if err := a.backend.CatchUp(ctx, lock); err != nil {
		return NoID, err
	}
	a.with(func(c *core) {
		if c.there(j.id) == nil {
			id = c.mappings.id(j.text)
		}
	})
	return id, nil
}

func (r Referrers) numbers() []uint64 { return slices.Sorted(maps.Keys(r.Others)) }

// canMove reports whether a key in use here could have this ID.
func (c *core) canMove(id uint64) bool { return c.byID[id] == nil && c.pool.inRange(id) }

// move gives another ID to a key whose turn the caller has. It reports false when the ID belongs to another key here,
// or is not in the range.
func (c *core) move(text string, id uint64) bool {
	u := c.uses[text]
	if !c.canMove(id) {
		return false
	}
	if u.refs > 0 {
		delete(c.byID, u.id)
		c.byID[id] = u
		if c.mappings.key(u.id) == nil {
			c.pool.Insert(u.id)
		}
		c.pool.Remove(id)
	}
	u.id = id
	return true
}
