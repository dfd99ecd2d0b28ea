package reasons

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
)

// TestReasons: each situation comes to its verdict, and every code of the registry
// is reached by one of them.
func TestReasons(t *testing.T) {
	t.Parallel()
	var reached []codes.Code
	for _, s := range situations() {
		w := newWorld(t)
		s.make(w)
		x := s.ask(w.view())
		if x.Verdict.Code != s.code || x.Verdict.Text != s.text {
			t.Errorf("%s: %s %s\nwant %s %s", s.name, x.Verdict.Code, x.Verdict.Text, s.code, s.text)
		}
		if e, _ := codes.Find(string(x.Verdict.Code)); e.Owner == codes.Reasons {
			reached = append(reached, x.Verdict.Code)
		}
		last := make(map[string]codes.Code)
		for _, step := range x.Steps {
			reached, last[step.Cluster] = append(reached, step.Code), step.Code
			if step.Text == "" || step.Keys == nil {
				t.Errorf("%s: %+v", s.name, step)
			}
		}
		for cluster, want := range s.having {
			if last[cluster] != want {
				t.Errorf("%s: of %s %s, want %s", s.name, cluster, last[cluster], want)
			}
		}
	}
	codestest.Reached(t, codes.Reasons, reached...)
}

// TestKeysAreNamed with their revisions, times, and problems.
func TestKeysAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exports("c2", same)
	w.knows("c3", wire.Services, "default/web", "no JSON")
	keys := make(map[string]api.Key)
	for _, step := range Service(w.view(), "default", "web").Steps {
		for _, k := range step.Keys {
			keys[step.Cluster] = k
		}
	}
	if k := keys["c2"]; k.Key != "cilium/state/services/v1/c2/default/web" || k.Revision != 7 || !k.Read.Equal(epoch) || k.Refused != "" {
		t.Errorf("c2: %+v", k)
	}
	if k := keys["c3"]; !strings.HasSuffix(k.Key, "/c3/default/web") || k.Refused != "no JSON" {
		t.Errorf("c3: %+v", k)
	}
}

// TestExportsAreShownWhereClustersDisagree on the session affinity: the export of each cluster, and none when they
// agree.
func TestExportsAreShownWhereClustersDisagree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	export := func(cluster, affinity string, timeout time.Duration) {
		x := &services.Export{Cluster: cluster, Namespace: "default", Name: "web", Type: wire.ServiceExportClusterSetIP, Affinity: affinity, Timeout: timeout, Created: epoch}
		w.Services.ApplyExports([]store.Change[services.Export]{{Name: "default/web", New: x}})
		w.knows(cluster, wire.ServiceExports, "default/web", "")
	}
	exported := func() map[string]string {
		said := make(map[string]string)
		for _, step := range Service(w.view(), "default", "web").Steps {
			_, text, _ := strings.Cut(step.Text, "; through the MCS API it exports it since 2026-11-22T01:02:03Z, with session affinity ")
			if key := "cilium/state/serviceexports/v1/" + step.Cluster + "/default/web"; text != "" && !slices.ContainsFunc(step.Keys, func(k api.Key) bool { return k.Key == key }) {
				t.Errorf("%s: %q without the key, of %v", step.Cluster, text, step.Keys)
			}
			said[step.Cluster] = text
		}
		return said
	}
	w.exports("c1", same)
	export("c1", wire.SessionAffinityNone, 0)
	export("c3", wire.SessionAffinityNone, 0)
	if got, want := exported(), map[string]string{"c1": "", "c2": "", "c3": ""}; !maps.Equal(got, want) {
		t.Errorf("they agree: %q", got)
	}
	export("c3", wire.SessionAffinityClientIP, time.Minute)
	if got, want := exported(), map[string]string{"c1": "None", "c2": "", "c3": "ClientIP for 60 s"}; !maps.Equal(got, want) {
		t.Errorf("they disagree: %q", got)
	}
	w.lose("c3")
	if got := exported()["c3"]; !strings.HasPrefix(got, "ClientIP for 60 s, not confirmed since 2026-11-22T01:02:03Z") {
		t.Errorf("one of them is lost: %q", got)
	}
}

// TestAbsenceNeedsEveryForm: no is said only of a cluster whose services are known
// as of now, in each form in which it exports them.
func TestAbsenceNeedsEveryForm(t *testing.T) {
	t.Parallel()
	synced, old, stale, syncing := remotecluster.FreshnessSynced, epoch.Add(-time.Minute), remotecluster.FreshnessStale, remotecluster.FreshnessSyncing
	for name, test := range map[string]struct {
		services, slices remotecluster.FamilyStatus
		code             codes.Code
		asOf             time.Time
	}{
		"slices only":               {source(false, synced, epoch), source(true, synced, old), codes.PartNotExported, old},
		"slices only, not listed":   {source(false, synced, epoch), source(true, syncing, time.Time{}), codes.PartUnknown, time.Time{}},
		"slices only, stale":        {source(false, synced, epoch), source(true, stale, old), codes.PartUnknown, old},
		"both":                      {source(true, synced, old), source(true, synced, epoch), codes.PartNotExported, old},
		"both, slices stale":        {source(true, synced, epoch), source(true, stale, old), codes.PartUnknown, old},
		"both, slices not listed":   {source(true, synced, epoch), source(true, syncing, time.Time{}), codes.PartUnknown, time.Time{}},
		"both, services not listed": {source(true, syncing, time.Time{}), source(true, synced, epoch), codes.PartUnknown, time.Time{}},
		"services only":             {source(true, synced, epoch), source(false, remotecluster.FreshnessUnknown, time.Time{}), codes.PartNotExported, epoch},
	} {
		w := newWorld(t)
		c := w.clusters["c2"]
		c.Families[wire.Services], c.Families[wire.EndpointSlices] = test.services, test.slices
		for _, step := range Service(w.view(), "default", "web").Steps {
			if step.Cluster != "c2" {
				continue
			}
			if asOf := step.AsOf; step.Code != test.code || (asOf == nil) != test.asOf.IsZero() || asOf != nil && !asOf.Equal(test.asOf) {
				t.Errorf("%s: %s as of %v: %s", name, step.Code, asOf, step.Text)
			}
		}
	}
}

// TestNoStepsIsNoNull: an explanation without evidence has an empty list in JSON, as the description of the API says.
func TestNoStepsIsNoNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clusters, w.own = nil, ""
	v := w.view()
	for name, x := range map[string]api.Explanation{
		"service": Service(v, "default", "web"), "node": Node(v, "c2", "n1"), "identity": Identity(v, 5),
	} {
		if x.Steps == nil {
			t.Errorf("%s: no list", name)
		}
	}
}

func source(exported bool, state remotecluster.FreshnessState, asOf time.Time) remotecluster.FamilyStatus {
	return remotecluster.FamilyStatus{Exported: exported, Synced: true, Freshness: remotecluster.Freshness{State: state, AsOf: asOf}}
}

// TestRefusedIsSaid: a copy from which entries are refused is not said to be whole.
func TestRefusedIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refuses("c2", wire.IPs, wire.ReasonBudget, 176)
	said := func(x api.Explanation, code codes.Code) string {
		for _, s := range x.Steps {
			if s.Code == code && strings.Contains(s.Text, "176") {
				return s.Text
			}
		}
		return ""
	}
	if got, want := said(Cluster(w.clusters["c2"]), codes.ResourceFresh), "0 ips, refused are 176 over its budget (keys)"; got != want {
		t.Errorf("the cluster: %q, want %q", got, want)
	}
	if got, want := said(address("10.0.0.1")(w.view()), codes.ClaimsRefused), "may claim it: 176 of its addresses are refused: over its budget (keys)"; got != want {
		t.Errorf("the address: %q, want %q", got, want)
	}
}
