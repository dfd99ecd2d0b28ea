package identity

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
)

func east() Owner { return Owner{Name: "east", ID: 2} }

// kinds renders findings as "severity kind subject".
func kinds(r Report) []string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s %s %s", f.Severity, f.Kind, f.Subject))
		if f.Message == "" || f.Remedy == "" {
			out = append(out, "without a message or a remedy")
		}
	}
	return out
}

// situation is the contents of a kvstore, with their problems.
type situation struct {
	contents Contents
	want     []string // as kinds renders it
}

// situations are contents with the expected findings.
func situations() map[string]situation {
	return map[string]situation{
		"nothing at all": {},
		"a mapping in use": {contents: Contents{
			Mappings:   []Mapping{{131072, "k8s:a=1;", 5}},
			References: []Reference{{"k8s:a=1;", "10.0.0.1", 131072}, {"k8s:a=1;", "10.0.0.2", 131072}},
			Uses:       []Use{{"10.1.0.1", 131072}, {"10.1.0.2", 6}},
		}},
		"a key with slashes in a row": {contents: Contents{
			Mappings:   []Mapping{{131072, "k8s:a=http://x;", 5}},
			References: []Reference{{"k8s:a=http:/x;", "10.0.0.1", 131072}},
		}},
		"a mapping that nobody uses": {
			Contents{Mappings: []Mapping{{131072, "k8s:a=1;", 5}}},
			[]string{"info mapping-without-reference 131072"},
		},
		"identities that one process writes": {
			Contents{
				Mappings: []Mapping{{131072, "k8s:a=1;", 5}, {131073, "k8s:b=1;", 5}},
				Uses:     []Use{{"10.1.0.1", 131072}, {"10.1.0.2", 131072}},
			},
			[]string{"info mapping-without-reference east", "info mapping-without-reference 131073"},
		},
		"an address without a reference": {
			Contents{
				Mappings:   []Mapping{{131072, "k8s:a=1;", 5}, {131073, "k8s:b=1;", 5}},
				References: []Reference{{"k8s:b=1;", "10.0.0.1", 131073}},
				Uses:       []Use{{"10.1.0.1", 131072}},
			},
			[]string{"warning mapping-without-reference 131072"},
		},
		"a reference without a mapping": {
			Contents{References: []Reference{{"k8s:a=1;", "10.0.0.1", 131072}}},
			[]string{"error reference-without-mapping 131072 on 10.0.0.1"},
		},
		"a reference to other labels": {
			Contents{Mappings: []Mapping{{131072, "k8s:a=2;", 5}}, References: []Reference{{"k8s:a=1;", "10.0.0.1", 131072}}},
			[]string{"error reference-to-another-mapping 131072 on 10.0.0.1", "info mapping-without-reference 131072"},
		},
		"numbers of another cluster": {
			Contents{
				Mappings:   []Mapping{{196608, "k8s:a=1;", 5}},
				References: []Reference{{"k8s:a=1;", "10.0.0.1", 196608}},
				Uses:       []Use{{"10.1.0.1", 196608}},
			},
			[]string{"error out-of-range 196608 on 10.0.0.1", "error out-of-range 10.1.0.1", "warning out-of-range 196608"},
		},
		"labels with two numbers, written in two ways": {
			Contents{
				Mappings:   []Mapping{{131073, "k8s:b=1;k8s:a=1;", 6}, {131072, "k8s:a=1;k8s:b=1;", 5}},
				References: []Reference{{"k8s:a=1;k8s:b=1;", "10.0.0.1", 131072}, {"k8s:b=1;k8s:a=1;", "10.0.0.1", 131073}},
			},
			[]string{"error equal-labels k8s:a=1;k8s:b=1;"},
		},
		"labels in use under several numbers": {
			Contents{
				Mappings:   []Mapping{{131072, "k8s:a=1;", 9}, {131073, "k8s:a=1;", 5}},
				References: []Reference{{"k8s:a=1;", "10.0.0.1", 131072}, {"k8s:a=1;", "10.0.0.2", 131073}},
			},
			[]string{"error equal-labels k8s:a=1;"},
		},
		"a range that is full soon": {
			Contents{Pace: Pace{Made: 10000, In: time.Hour}},
			[]string{"warning range-running-full east"},
		},
		"what cannot be read": {
			Contents{Malformed: []Malformed{{"cilium/state/identities/v1/id/x", "no number"}}},
			[]string{"warning unreadable cilium/state/identities/v1/id/x"},
		},
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	var reached []codes.Code
	for name, c := range situations() {
		r := Check(east(), &c.contents)
		for _, f := range r.Findings {
			reached = append(reached, f.Code)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, kinds(r)); diff != "" {
				t.Error(diff)
			}
		})
	}
	codestest.Reached(t, codes.IdentityCheck, reached...)
}

func TestCheckCountsAndExtrapolates(t *testing.T) {
	t.Parallel()
	var c Contents
	for i := range 1000 {
		key := fmt.Sprintf("k8s:n=%d;", i)
		c.Mappings = append(c.Mappings, Mapping{uint64(131072 + i), key, int64(i)})
		if i < 900 {
			c.References = append(c.References, Reference{key, "10.0.0.1", uint64(131072 + i)})
		}
	}
	r := Check(east(), &c)
	if r.Mappings != 1000 || r.InUse != 900 || r.Free != 64536 || r.References != 900 || r.First != 131072 || r.Last != 196607 {
		t.Errorf("%+v", r)
	}
	if r.PerDay != nil || r.DaysLeft != nil {
		t.Error("a rate is known without heartbeats")
	}

	c.Pace = Pace{Made: 1000, In: 12 * time.Hour}
	r = Check(east(), &c)
	if r.PerDay == nil || *r.PerDay != 2000 || r.DaysLeft == nil || *r.DaysLeft != 64536.0/2000 || r.RateOver != "12h0m0s" {
		t.Errorf("%+v", r)
	}
	if got := kinds(r)[0]; got != "info mapping-without-reference 131972" {
		t.Errorf("32 days are enough, but %s", got)
	}

	c.Pace = Pace{Made: 1000, In: time.Hour}
	if got := kinds(Check(east(), &c))[0]; got != "warning range-running-full east" {
		t.Errorf("%s, though the range lasts for three days", got)
	}

	c.Pace = Pace{In: time.Hour}
	if r := Check(east(), &c); r.PerDay == nil || *r.PerDay != 0 || r.DaysLeft != nil {
		t.Errorf("nothing was made: %+v", r)
	}

	c.Pace = Pace{Made: 1000, In: 30 * time.Second}
	if r := Check(east(), &c); r.PerDay != nil {
		t.Error("half a minute is no rate")
	}
}
