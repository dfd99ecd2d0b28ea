package services

import (
	"fmt"
	"iter"
	"net/netip"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// judge refuses backends inside its networks, with a different rule for each network.
type judge struct {
	networks []netip.Prefix
	enforce  bool
}

type inNetwork netip.Prefix

func (n inNetwork) String() string { return "inside " + netip.Prefix(n).String() }

func (j *judge) Enforces() bool { return j.enforce }

func (j *judge) Breaches(addrs iter.Seq[netip.Addr], visit func(netip.Addr, uint8, fmt.Stringer)) {
	for a := range addrs {
		for i, n := range j.networks {
			if n.Contains(a) {
				visit(a, uint8(i+1), inNetwork(n))
			}
		}
	}
}

func newJudge(enforce bool, networks ...string) *judge {
	j := &judge{enforce: enforce}
	for _, n := range networks {
		j.networks = append(j.networks, netip.MustParsePrefix(n))
	}
	return j
}

// TestBackendsThatNoRemoteCanHave: such backends are found in both export formats, and not used when the rules are
// enforced. Backends of the own cluster are not judged.
func TestBackendsThatNoRemoteCanHave(t *testing.T) {
	t.Parallel()
	for _, enforce := range []bool{false, true} {
		db, s := newServices(t)
		s.JudgeBackends(newJudge(enforce, "10.99.0.0/16", "127.0.0.0/8"))
		own := local(svc("c1", true, "10.99.0.1"), wire.AffinityNone)
		s.Apply([]change{{New: own}, {New: svc("c2", true, "10.2.0.1", "10.99.0.5", "10.99.0.6", "127.0.0.1")}, {New: svc("c4", false, "127.0.0.1")}})
		s.ApplySlices([]sliceChange{{New: slice("c3", "svc-1", "svc", "10.3.0.1", "127.0.0.2")}})
		want := []string{"c1 10.99.0.1 -", "c2 10.2.0.1 -", "c2 10.99.0.5 -", "c2 10.99.0.6 -", "c2 127.0.0.1 -", "c3 10.3.0.1 n", "c3 127.0.0.2 n"}
		but := "; no remote can have: "
		if enforce {
			want = []string{"c1 10.99.0.1 -", "c2 10.2.0.1 -", "c3 10.3.0.1 n"}
			but = "; not used: "
		}
		if diff := gocmp.Diff(want, listed(db, s, "svc")); diff != "" {
			t.Errorf("enforce %v: %s", enforce, diff)
		}
		g, _, _ := s.Global().Get(db.ReadTxn(), GlobalByName("ns", "svc"))
		if got := g.Part("c1").Strays(); got != nil {
			t.Errorf("the own backends were judged: %v", got)
		}
		if got := g.Part("c4").Strays(); got != nil {
			t.Errorf("backends that are not shared were judged: %v", got)
		}
		strays := []Stray{
			{1, 2, enforce, netip.MustParseAddr("10.99.0.5"), "inside 10.99.0.0/16"},
			{2, 1, enforce, netip.MustParseAddr("127.0.0.1"), "inside 127.0.0.0/8"},
		}
		if diff := gocmp.Diff(fmt.Sprint(strays), fmt.Sprint(g.Part("c2").Strays())); diff != "" {
			t.Errorf("enforce %v: %s", enforce, diff)
		}
		if why := g.Reason(g.Part("c2")); !strings.Contains(why, but+"2 backends, such as 10.99.0.5: inside 10.99.0.0/16"+but+"1 backend, such as 127.0.0.1") {
			t.Errorf("enforce %v: %s", enforce, why)
		}
		if e, _, _ := s.Exported().Get(db.ReadTxn(), ByKey("c2", "ns", "svc")); len(e.Backends) != 4 || e.Strays() != nil {
			t.Errorf("what the cluster says has changed: %v", e)
		}
	}
}

// TestBackendsAreJudgedAgain: unchanged services are not written.
func TestBackendsAreJudgedAgain(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	j := newJudge(true, "127.0.0.0/8")
	s.JudgeBackends(j)
	s.Apply([]change{{New: svc("c2", true, "10.2.0.1", "10.99.0.5", "127.0.0.1")}})
	want := func(when string, lines ...string) {
		t.Helper()
		if diff := gocmp.Diff(lines, listed(db, s, "svc")); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	want("at first", "c2 10.2.0.1 -", "c2 10.99.0.5 -")
	before := s.Global().Revision(db.ReadTxn())
	s.JudgeAgain()
	if s.Global().Revision(db.ReadTxn()) != before {
		t.Error("an unchanged service was written")
	}
	j.networks = append(j.networks, netip.MustParsePrefix("10.99.0.0/16"))
	s.JudgeAgain()
	want("another network", "c2 10.2.0.1 -")
	j.networks = nil
	s.JudgeAgain()
	want("no network", "c2 10.2.0.1 -", "c2 10.99.0.5 -", "c2 127.0.0.1 -")
}
