package services

import (
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// at returns a service with a backend for each of the states.
func at(cluster string, states ...Conditions) *Service {
	s := svc(cluster, true)
	for i, c := range states {
		s.Backends = append(s.Backends, Backend{IP: ip(fmt.Sprintf("10.0.0.%d", i+1)), Conditions: c})
	}
	return s
}

const (
	active   = Conditions(0)
	stopping = NotReady | IsTerminating // but still serving
	broken   = NotReady | NotServing
)

func TestSelection(t *testing.T) {
	t.Parallel()
	both := Selection{Local: true, Remote: true}
	localActive := Selection{Local: true, Why: "standing by: the affinity is local and a local backend is active"}
	noRemote := Selection{Local: true, Why: "standing by: the affinity is local and no remote backend is healthy"}
	remoteHealthy := Selection{Remote: true, Why: "standing by: the affinity is remote and a remote backend is healthy"}
	noLocal := Selection{Remote: true, Why: "standing by: the affinity is remote and no local backend is healthy"}
	notGlobal := Selection{Local: true, Why: "not used: the local service is not global"}
	own := func(a wire.Affinity, states ...Conditions) *Service { return local(at("c1", states...), a) }
	private := func(s *Service, includeExternal bool) *Service {
		s.Shared, s.IncludeExternal = false, includeExternal
		return s
	}
	tests := map[string]struct {
		parts []*Service
		want  Selection
	}{
		"an observer selects everything":                   {[]*Service{at("c2", active), at("c3", broken)}, both},
		"no affinity":                                      {[]*Service{own("", active), at("c2", active)}, both},
		"no affinity and nothing healthy":                  {[]*Service{own("", broken), at("c2", broken)}, both},
		"local: an active one":                             {[]*Service{own("local", broken, active), at("c2", active)}, localActive},
		"local: a terminating one is not active":           {[]*Service{own("local", stopping), at("c2", active)}, both},
		"local: a terminating remote one is healthy":       {[]*Service{own("local", stopping), at("c2", stopping)}, both},
		"local: only a broken one":                         {[]*Service{own("local", broken), at("c2", active)}, both},
		"local: none":                                      {[]*Service{own("local"), at("c2", active)}, both},
		"local: none, and no healthy remote":               {[]*Service{own("local"), at("c2", broken), at("c3")}, noRemote},
		"local: none, and the remote's are withheld":       {[]*Service{own("local"), withheld(at("c2", active))}, noRemote},
		"remote: nobody shares it, and nothing is healthy": {[]*Service{private(own("remote", broken), true)}, notGlobal},
		"local: none, and the remote does not share":       {[]*Service{own("local"), private(at("c2", active), true)}, noRemote},
		"remote: a healthy one":                            {[]*Service{own("remote", active), at("c2", broken), at("c3", active)}, remoteHealthy},
		"remote: a terminating one is healthy":             {[]*Service{own("remote", active), at("c2", stopping)}, remoteHealthy},
		"remote: only a broken one":                        {[]*Service{own("remote", active), at("c2", broken)}, both},
		"remote: none, a terminating local one":            {[]*Service{own("remote", stopping), at("c2")}, both},
		"remote: withheld":                                 {[]*Service{own("remote", active), withheld(at("c2", active))}, both},
		"remote: demoted":                                  {[]*Service{own("remote", active), usedAs(at("c2", active), Demoted)}, both},
		"remote: one of two demoted":                       {[]*Service{own("remote", active), usedAs(at("c2", active), Demoted), at("c3", active)}, remoteHealthy},
		"local: none, and the remote's are demoted":        {[]*Service{own("local", broken), usedAs(at("c2", active), Demoted)}, both},
		"local: terminating, and the remote's are demoted": {[]*Service{own("local", stopping), usedAs(at("c2", active), Demoted)}, noRemote},
		"remote: nothing healthy anywhere":                 {[]*Service{own("remote", broken), at("c2", broken)}, noLocal},
		"not global":                                       {[]*Service{private(own("", active), false), at("c2", active)}, notGlobal},
		"not global, so its affinity is ignored":           {[]*Service{private(own("remote", active), false), at("c2", active)}, notGlobal},
		"global without sharing its own: no affinity":      {[]*Service{private(own("", active), true), at("c2", active)}, both},
		"global without sharing its own: remote":           {[]*Service{private(own("remote", active), true), at("c2", active)}, remoteHealthy},
		"global where no cluster shares it":                {[]*Service{private(own("local", active), true), private(at("c2", active), true)}, notGlobal},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := Merge(tc.parts)
			if got := g.Selection(); got.Local != tc.want.Local || got.Remote != tc.want.Remote || got.Why != tc.want.Why {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			for _, p := range g.Parts {
				if p.Use == Full && g.Selection().Selects(p) != (p.Local() && tc.want.Local || !p.Local() && tc.want.Remote) {
					t.Errorf("the part of %s", p.Cluster)
				}
			}
		})
	}
}

func TestReasonOfThoseThatStandBy(t *testing.T) {
	t.Parallel()
	g := Merge([]*Service{local(at("c1", active), wire.AffinityLocal), at("c2", active, active), at("c3")})
	want := map[string]string{
		"c1": "the local service of c1 with 1 backend, shared with other clusters",
		"c2": "shared by c2 with 2 backends; standing by: the affinity is local and a local backend is active",
		"c3": "shared by c3 with no backends",
	}
	for _, p := range g.Parts {
		if got := g.Reason(p); got != want[p.Cluster] {
			t.Errorf("%s: %q, want %q", p.Cluster, got, want[p.Cluster])
		}
	}
}

// TestGoldenAnnotations gives the annotations to the local service, and checks which affinity counts and whether the
// backends of other clusters are used.
func TestGoldenAnnotations(t *testing.T) {
	t.Parallel()
	var vectors []struct {
		Annotations map[string]string `json:"annotations"`
		Global      bool              `json:"global"`
		Affinity    string            `json:"affinity"`
	}
	readGolden(t, "service_annotations.json", &vectors)
	for _, v := range vectors {
		a, _ := wire.ParseServiceAnnotations(v.Annotations) // an unknown affinity counts as none
		mine := local(at("c1"), a.Affinity)
		mine.Shared, mine.IncludeExternal = a.Shared, a.Global
		g := Merge([]*Service{mine, at("c2", active)})
		want := v.Affinity
		if want == "" {
			want = "none"
		}
		if g.Affinity() != want || g.Selection().Remote != v.Global {
			t.Errorf("%v: the affinity is %s, and remote backends are used: %v", v.Annotations, g.Affinity(), g.Selection().Remote)
		}
	}
	if len(vectors) == 0 {
		t.Error("no vectors")
	}
}
