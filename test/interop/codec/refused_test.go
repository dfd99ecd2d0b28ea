package codec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
	"github.com/mesh-agent/mesh-agent/test/interop/random"
)

// spoilt is the number of spoilt entries of each kind that both sides read.
const spoilt = 5_000

// TestWhatOneSideRefusesTheOtherRefuses spoils valid entries: both sides refuse an
// entry, or both read the same object.
func TestWhatOneSideRefusesTheOtherRefuses(t *testing.T) {
	t.Parallel()
	seed := interop.Seed(t)
	for _, release := range interop.Releases(t) {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			c := random.Cluster{Name: "c2", ID: 2, MaxConnectedClusters: 255}
			s := subject{p: interop.Start(t, release, "codec"), cluster: c, expect: expect(t, c)}
			about := interop.Ask[model.About](t, s.p, "Codec.About", struct{}{})
			trial := interop.Trial{Name: "Malformed values", Release: release}
			for _, kind := range about.Kinds {
				trial.Figures = append(trial.Figures, s.refuse(t, kind, seed))
			}
			if !t.Failed() {
				interop.KeepTrial(t, trial)
			}
		})
	}
}

// refuse has both sides read spoilt entries of a kind.
func (s subject) refuse(t *testing.T, kind model.Kind, seed uint64) interop.Figure {
	m := mutator{rand.New(rand.NewPCG(seed, 0))}
	var refused, read, found int
	for objects := range random.Chunks(seed, spoilt, ofCall, kind, s.cluster) {
		entries := ours.Encode(objects)
		for i, e := range entries {
			entries[i] = m.entry(kind, e)
		}
		reply := interop.Ask[model.DecodeEachReply](t, s.p, "Codec.DecodeEach", model.DecodeArgs{
			Expect: model.Expect{Cluster: s.cluster.Name, ClusterID: s.cluster.ID}, Entries: entries,
		})
		for i, theirs := range reply.Each {
			own, rejected := ours.Decode(s.expect, false, entries[i:i+1])
			switch text := s.disagreement(kind, own, rejected, theirs); {
			case text != "":
				if found++; found <= 5 {
					t.Errorf("%s %q = %q: %s", kind, entries[i].Key, shortened(entries[i].Value), text)
				}
			case len(rejected) > 0:
				refused++
			default:
				read++
			}
		}
	}
	if refused < spoilt/10 || read < spoilt/10 {
		t.Errorf("%s: %d refused and %d read of %d: too few to prove anything", kind, refused, read, spoilt)
	}
	return interop.Figure{
		Name:  string(kind),
		Value: fmt.Sprintf("%d refused by both, %d read equally by both, %d different", refused, read, found),
	}
}

// disagreement describes the difference between both sides' results for an entry; empty if they agree.
func (s subject) disagreement(kind model.Kind, own model.Objects, rejected []model.Rejected, theirs model.DecodeReply) string {
	ourError, theirError := errorOf(rejected), errorOf(theirs.Rejected)
	switch {
	case ourError != "" && theirError != "", theirError == "" && s.excused(kind, ourError):
		return ""
	case ourError != "":
		return "only we refuse it: " + ourError
	case theirError != "":
		return "only they refuse it: " + theirError
	}
	arriving(&theirs.Objects, s.p.Release, kind, interop.TheyWrite)
	arriving(&own, s.p.Release, kind, interop.WeWrite)
	s.leaveOut(&theirs.Objects, &own)
	if err := sent(&own); err != nil {
		return err.Error()
	}
	if d := interop.Compare(theirs.Objects, own); len(d) > 0 {
		return fmt.Sprintf("they read something else (-they +we): %v", d)
	}
	return ""
}

func errorOf(rejected []model.Rejected) string {
	if len(rejected) == 0 {
		return ""
	}
	return rejected[0].Error
}

// sent changes objects as they are when they come from a peer: invalid UTF-8 is replaced.
func sent(o *model.Objects) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	*o = model.Objects{}
	return json.Unmarshal(text, o)
}

func shortened(v []byte) []byte { return v[:min(len(v), 600)] }
