package doublewrite_test

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/doublewrite"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAKeyOfTheOtherSideKeepsItsNumber: what is in use on the side that is not read,
// and not yet on the one that is, is found under the key's lock, unless the number
// belongs to another key there.
func TestAKeyOfTheOtherSideKeepsItsNumber(t *testing.T) {
	t.Parallel()
	for _, read := range []doublewrite.Side{doublewrite.Primary, doublewrite.Secondary} {
		primary, secondary := memory.New(), memory.New()
		defer primary.Close()
		defer secondary.Close()
		sides := []allocator.Backend{memoryBackend(t, primary, wire.IdentityAllocation), memoryBackend(t, secondary, newPaths)}
		reading, other := sides[read], sides[1-read]
		for id, key := range map[uint64]text{7: "a", 8: "b"} {
			if err := other.UpdateKey(t.Context(), id, key, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := reading.AllocateID(t.Context(), 8, text("c"), nil); err != nil {
			t.Fatal(err)
		}
		b := doublewrite.New(sides[0], sides[1], read, nil, nil)
		for key, want := range map[text]uint64{"a": 7, "b": allocator.NoID, "d": allocator.NoID} {
			lock, err := b.Lock(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if id, err := b.Get(t.Context(), key, lock); err != nil || id != want {
				t.Errorf("reading the %s side: %s has %d, %v; want %d", read, key, id, err, want)
			}
			lock.Unlock()
			if id, err := b.Get(t.Context(), key, nil); err != nil || id != allocator.NoID {
				t.Errorf("reading the %s side without a lock: %s has %d, %v", read, key, id, err)
			}
		}
	}
}
