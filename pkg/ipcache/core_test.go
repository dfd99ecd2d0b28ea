package ipcache

import (
	"net/netip"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestALoserIsNoEventButShows: a claim that loses changes no winner, but the
// number of claims, so the snapshot has to be made again.
func TestALoserIsNoEventButShows(t *testing.T) {
	t.Parallel()
	p := netip.MustParsePrefix("10.0.0.1/32")
	winner := NewEntry(Spec{Prefix: p, Cluster: &Cluster{"a", 1}})
	loser := NewEntry(Spec{Prefix: p, Cluster: &Cluster{"b", 2}})
	c := newCore()
	c.apply(Op{New: winner})
	var taken []*Snapshot
	for _, step := range []struct {
		what   string
		op     Op
		claims int
	}{
		{"a loser comes", Op{New: loser}, 2},
		{"the loser goes", Op{Old: loser}, 1},
	} {
		revision := c.revision
		if ch := c.apply(step.op); ch != [2]change{{winner, winner}} {
			t.Errorf("%s: a winner changed: %+v", step.what, ch)
		}
		s := c.copy(time.Time{})
		taken = append(taken, s)
		if s.Revision() == revision || s.Claims(winner) != step.claims {
			t.Errorf("%s: revision %d after %d, %d claims, want %d", step.what, s.Revision(), revision, s.Claims(winner), step.claims)
		}
	}
	if taken[0].Claims(winner) != 2 || taken[0].Conflicts() != 1 {
		t.Error("a snapshot forgot the loser that went after it")
	}
}

// TestTheNextClaimTakesOver in the step in which the winner goes, as the object
// that it was.
func TestTheNextClaimTakesOver(t *testing.T) {
	t.Parallel()
	p := netip.MustParsePrefix("10.0.0.1/32")
	mesh := NewEntry(Spec{Prefix: p, Cluster: &Cluster{"a", 1}, Source: wire.SourceClusterMesh})
	further := NewEntry(Spec{Prefix: p, Cluster: &Cluster{"b", 2}, Source: wire.SourceClusterMesh})
	local := NewEntry(Spec{Prefix: p, Cluster: &Cluster{"own", 9}, Source: wire.SourceLocal})
	c := newCore()
	for _, step := range []struct {
		what string
		op   Op
		want change
	}{
		{"the higher cluster ID first", Op{New: further}, change{nil, further}},
		{"the lower one wins", Op{New: mesh}, change{further, mesh}},
		{"a local claim displaces", Op{New: local}, change{mesh, local}},
		{"the one behind it goes unseen", Op{Old: further}, change{local, local}},
		{"the mesh claim returns", Op{Old: local}, change{local, mesh}},
		{"nobody is left", Op{Old: mesh}, change{mesh, nil}},
	} {
		if ch := c.apply(step.op); ch[0] != step.want {
			t.Errorf("%s: %+v, want %+v", step.what, ch[0], step.want)
		}
	}
}
