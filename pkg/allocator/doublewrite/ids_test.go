package doublewrite_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestIDsOfBothSides: those of the side that is read are listed; one is deleted on both,
// but nowhere where it is used.
func TestIDsOfBothSides(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	primary, secondary := memory.New(), memory.New()
	defer primary.Close()
	defer secondary.Close()
	b := doublewrite.New(memoryBackend(t, primary, wire.IdentityAllocation), memoryBackend(t, secondary, newPaths), doublewrite.Primary, nil, nil)
	unused, held, there := text("unused"), text("held"), text("there")
	for id, key := range map[uint64]text{1: unused, 2: held, 3: there} {
		if created, err := b.AllocateID(ctx, id, key, nil); !created || err != nil {
			t.Fatal(created, err)
		}
	}
	primary.Set(wire.IdentityAllocation.Reference(held.GetKey(), "10.0.0.9"), "2")
	secondary.Set(newPaths.Reference(there.GetKey(), "10.0.0.9"), "3")
	for id, want := range map[uint64]bool{1: true, 2: false, 3: true, 4: false} {
		deleted, err := b.DeleteID(ctx, id)
		if deleted != want || errors.Is(err, allocator.ErrIDInUse) != (id == 2) || err != nil && id != 2 {
			t.Errorf("%d is deleted: %t, %v", id, deleted, err)
		}
	}
	if ids, err := b.ListIDs(ctx); err != nil || !slices.Equal(ids, []uint64{2}) {
		t.Errorf("the primary has %d, %v", ids, err)
	}
	ids, err := memoryBackend(t, secondary, newPaths).ListIDs(ctx)
	if err != nil || !slices.Equal(ids, []uint64{2, 3}) {
		t.Errorf("the secondary has %d, %v", ids, err)
	}

	secondary.SetFault(func(context.Context, string, string) error { return errors.New("away") })
	primary.Set(wire.IdentityAllocation.Mapping(5), "fifth")
	if deleted, err := b.DeleteID(ctx, 5); !deleted || err != nil {
		t.Errorf("without the other side: %t, %v", deleted, err)
	}
}
