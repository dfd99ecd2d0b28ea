package codec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
	"github.com/mesh-agent/mesh-agent/test/interop/random"
)

// How many objects of each kind are compared, and how many in one call.
const (
	ofNewest = 10_000
	ofOthers = 1_000
	ofWide   = 1_000 // in a mesh of 511 clusters
	ofCall   = 250
)

// TestWhatOneSideWritesTheOtherReads compares random objects of each kind, in both
// directions, in meshes of either size.
func TestWhatOneSideWritesTheOtherReads(t *testing.T) {
	t.Parallel()
	seed := interop.Seed(t)
	for _, release := range interop.Releases(t) {
		n := ofOthers
		if release == interop.Newest {
			n = ofNewest
		}
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			compareKinds(t, release, random.Cluster{Name: "c2", ID: 2, MaxConnectedClusters: 255}, seed, n)
			compareKinds(t, release, random.Cluster{Name: "c500", ID: 500, MaxConnectedClusters: 511}, seed, ofWide)
		})
	}
}

func compareKinds(t *testing.T, release string, c random.Cluster, seed uint64, n int) {
	p := interop.Start(t, release, "codec", fmt.Sprint(c.MaxConnectedClusters))
	about := interop.Ask[model.About](t, p, "Codec.About", struct{}{})
	if about.Release != release {
		t.Fatalf("the peer of %s says that it is %q", release, about.Release)
	}
	s := subject{p: p, cluster: c, expect: expect(t, c)}
	for _, kind := range model.Kinds() {
		if !slices.Contains(about.Kinds, kind) {
			continue
		}
		for _, d := range []interop.Direction{interop.TheyWrite, interop.WeWrite} {
			s.compare(t, kind, d, seed, n)
		}
	}
	for _, l := range p.Complaints() {
		t.Errorf("the peer of %s complains: %s", release, l.Text)
	}
}

func expect(t *testing.T, c random.Cluster) wire.Expect {
	t.Helper()
	layout, err := wire.NewLayout(c.MaxConnectedClusters)
	interop.Must(t, err)
	return wire.Expect{Cluster: c.Name, ClusterID: c.ID, LocalID: 1, Layout: layout}
}

// subject is a peer and the cluster whose objects it reads and writes.
type subject struct {
	p       *interop.Peer
	cluster random.Cluster
	expect  wire.Expect
}

// compare sends n objects of a kind from the one side to the other.
func (s subject) compare(t *testing.T, kind model.Kind, d interop.Direction, seed uint64, n int) {
	r := interop.Result{Release: s.p.Release, Kind: kind, Direction: d, Path: interop.Values, Seed: seed}
	for objects := range random.Chunks(seed, n, ofCall, kind, s.cluster) {
		got, rejected := s.send(t, d, objects)
		arriving(&objects, s.p.Release, kind, d)
		differences := interop.Compare(objects, got)
		r.Objects += interop.Count(objects, kind)
		r.Different += len(differences)
		r.Rejected += len(rejected)
		report(t, d, differences, rejected)
	}
	if r.Objects != n {
		t.Errorf("%s: %d objects were compared, not %d", kind, r.Objects, n)
	}
	interop.Keep(t, r)
}

// send writes on the one side and reads on the other.
func (s subject) send(t *testing.T, d interop.Direction, o model.Objects) (model.Objects, []model.Rejected) {
	t.Helper()
	if d == interop.TheyWrite {
		return s.weRead(t, interop.Ask[model.EncodeReply](t, s.p, "Codec.Encode", o).Entries)
	}
	reply := interop.Ask[model.DecodeReply](t, s.p, "Codec.Decode", model.DecodeArgs{
		Expect:  model.Expect{Cluster: s.cluster.Name, ClusterID: s.cluster.ID},
		Entries: ours.Encode(o),
	})
	return reply.Objects, reply.Rejected
}

// weRead reads the entries, and once more as a mirror would have copied them.
func (s subject) weRead(t *testing.T, entries []model.KV) (model.Objects, []model.Rejected) {
	t.Helper()
	direct, rejected := ours.Decode(s.expect, false, entries)
	cached, rejectedCached := ours.Decode(s.expect, true, s.copied(entries))
	if d := interop.Compare(direct, cached); len(d) > 0 || len(rejected) != len(rejectedCached) {
		t.Fatalf("what is read from a cache differs: %v", d)
	}
	return direct, rejected
}

// copied returns the entries as they are below cilium/cache.
func (s subject) copied(entries []model.KV) []model.KV {
	cached := slices.Clone(entries)
	for i, entry := range entries {
		for _, r := range wire.Resources() {
			if name, ok := strings.CutPrefix(entry.Key, r.Prefix(s.cluster.Name, false)); ok {
				cached[i].Key = r.Key(s.cluster.Name, true, name)
			}
		}
	}
	return cached
}

// report fails the test, with a few of the differences.
func report(t *testing.T, d interop.Direction, differences []interop.Difference, rejected []model.Rejected) {
	t.Helper()
	for _, diff := range differences[:min(3, len(differences))] {
		t.Errorf("%s: %v", d, diff)
	}
	for _, r := range rejected[:min(3, len(rejected))] {
		t.Errorf("%s: rejected: %s: %s", d, r.Key, r.Error)
	}
}
