package identity_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestOneRuleJudgesAKey: of any keys, what 'identity check' calls unused, what the dry run shows, and
// what two rounds of garbage collection delete are the same mappings.
func TestOneRuleJudgesAKey(t *testing.T) {
	t.Parallel()
	east := cluster(t, "east", 2)
	first, last := east.Range()
	texts := []string{"k8s:a=1;", "k8s:a=1;k8s:b=2;", "k8s:a=//x;", "k8s:a=/x;", "/k8s:a=1;", ";;", "", "k8s:a=1;/10.0.0.9", "k8s:a"}
	numbers := []string{"131072", "131073", "131074", "0131072", "131071", "196608", "0", "x", "1/2"}
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		client := memory.New()
		defer client.Close()
		write := func(key, value string) {
			if _, err := client.Put(ctx, key, []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		text, number := rapid.SampledFrom(texts), rapid.SampledFrom(numbers)
		for range rapid.IntRange(0, 8).Draw(t, "mappings") {
			write(wire.IdentityAllocation.Mappings()+number.Draw(t, "name"), text.Draw(t, "text"))
		}
		for range rapid.IntRange(0, 8).Draw(t, "references") {
			name := text.Draw(t, "of") + rapid.SampledFrom([]string{"/10.0.0.1", "/10.0.0.2", "", "//n"}).Draw(t, "node")
			write(wire.IdentityAllocation.References()+name, number.Draw(t, "number"))
		}
		contents, err := identity.Read(ctx, client, identity.OwnPlace(), identity.Addresses)
		if err != nil {
			t.Fatal(err)
		}
		unused := contents.Unused(east)
		var checked []uint64
		for _, f := range identity.Check(east, contents).Findings {
			if f.Code == codes.MappingUnused {
				id, err := strconv.ParseUint(f.Subject, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				checked = append(checked, id)
			}
		}
		slices.Sort(checked)
		b, err := kvbackend.New(client, kvbackend.Config{Paths: wire.IdentityAllocation, Node: "gc", Keys: identity.Key{}})
		if err != nil {
			t.Fatal(err)
		}
		stale, _, err := b.RunGC(ctx, nil, nil, uint64(first), uint64(last))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(unused, stale); diff != "" {
			t.Errorf("the dry run and the first round (-dry +round):\n%s", diff)
		}
		before := listIDs(t, b)
		_, stats, err := b.RunGC(ctx, nil, stale, uint64(first), uint64(last))
		if err != nil {
			t.Fatal(err)
		}
		deleted := slices.DeleteFunc(before, func(id uint64) bool { return slices.Contains(listIDs(t, b), id) })
		want := append([]uint64{}, unused.IDs()...)
		for what, got := range map[string][]uint64{"check": checked, "the collection": deleted} {
			if diff := cmp.Diff(want, append([]uint64{}, got...)); diff != "" {
				t.Errorf("the dry run and %s (-dry +other):\n%s", what, diff)
			}
		}
		if stats.Deleted != len(want) {
			t.Errorf("%d are counted of %d", stats.Deleted, len(want))
		}
		for id, users := range contents.Users() {
			if _, is := unused[id]; is {
				t.Errorf("%d is unused, and used by %v", id, fmt.Sprint(slices.Sorted(slices.Values(users))))
			}
		}
		for _, m := range contents.Mappings {
			_, is := unused[m.ID]
			within := uint64(first) <= m.ID && m.ID <= uint64(last)
			if used := len(contents.Users()[m.ID]) > 0; within && used == is {
				t.Errorf("%d: used %v, unused %v (%v)", m.ID, used, is, slices.Sorted(maps.Keys(unused)))
			}
		}
	})
}

func listIDs(t *rapid.T, b allocator.Backend) []uint64 {
	ids, err := b.ListIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
