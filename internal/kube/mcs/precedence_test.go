package mcs

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

const years = 365 * 24 * 3600 // in seconds

// The date and all other fields of a remote's export change nothing of the own cluster's export: neither its type,
// ports, families and other fields, nor labels and annotations.
func TestNoRemoteDecidesWhatTheOwnClusterExports(t *testing.T) {
	t.Parallel()
	own := func() *services.Export {
		return export("c1", 0, labels(map[string]string{"team": "a"}), annotations(map[string]string{"note": "b"}), families("IPv4", "IPv6"))
	}
	hostile := export("c0", -54*years, headlessExport, ports(port("http", 8443), port("more", 80)), families("IPv6"), sticky(5), internal("Local"), distribution("PreferClose"),
		labels(map[string]string{"evil": "1"}), annotations(map[string]string{"external-dns.alpha.kubernetes.io/hostname": "bank.example", "argocd.argoproj.io/sync-options": "Prune=false"}))
	f := facts()
	f.Families, f.Export = []string{"IPv4", "IPv6"}, &OwnExport{Service: service()}
	f.Labels, f.Annotations = Allowed{"evil"}, Allowed{"external-dns.alpha.kubernetes.io/*"}
	f.Winner = "c0" // until the own cluster exported it
	w := Make("shop", "cart", []*services.Export{hostile, own()}, f)
	m := Merge([]*services.Export{hostile, own()}, f.Precedence())
	if got, want := textOf(m), "ClusterSetIP http:80 IPv4,IPv6 labels map[team:a] annotations map[note:b]"; got != want {
		t.Errorf("merged: %q, want %q", got, want)
	}
	for _, key := range []string{"external-dns.alpha.kubernetes.io/hostname", "argocd.argoproj.io/sync-options", "evil"} {
		if _, has := w.Derived.Annotations[key]; has || w.Derived.Labels[key] != "" || w.Import.Annotations[key] != "" {
			t.Errorf("%s is on our objects", key)
		}
	}
	if w.Recreate || headless(w.Derived) || w.Derived.Spec.Ports[0].Port != 80 || w.Derived.Labels["team"] != "a" || w.Import.Annotations[AnnotationWinner] != "c1" {
		t.Errorf("%+v", w.Derived)
	}
	for _, c := range w.Conditions {
		if c.Type == ConditionConflict && !strings.Contains(c.Message, "type: what cluster c1 exports counts, because it is the own cluster, whatever the age of its export; 1 of 2 clusters differ") {
			t.Errorf("the condition says %q", c.Message)
		}
	}
}

// Among remotes: who counts, and why.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return epoch().Add(time.Duration(seconds) * time.Second) }
	seen := func(of map[string]int) func(string) time.Time {
		return func(cluster string) time.Time {
			if seconds, known := of[cluster]; known {
				return at(seconds)
			}
			return time.Time{}
		}
	}
	for name, test := range map[string]struct {
		exports []*services.Export
		by      Precedence
		want    string // the order
		why     string // the first counts, and not the second
	}{
		"by age": {
			[]*services.Export{export("c2", 2), export("c3", 1)},
			Precedence{},
			"c3 c2", "its export is the oldest, since 2026-01-02T03:04:06Z",
		},
		"who has counted counts": {
			[]*services.Export{export("c2", -54*years), export("c3", 1)},
			Precedence{Winner: "c3"},
			"c3 c2", "the import followed it before, whatever the age of other exports",
		},
		"who has counted is gone": {
			[]*services.Export{export("c2", 0), export("c3", 1)},
			Precedence{Winner: "c4"},
			"c2 c3", "its export is the oldest, since 2026-01-02T03:04:05Z",
		},
		"the own cluster before who has counted": {
			[]*services.Export{export("c1", 5), export("c2", 0), export("c3", 1)},
			Precedence{Own: "c1", Winner: "c3"},
			"c1 c3 c2", "it is the own cluster, whatever the age of its export",
		},
		"a cluster that came later has no older export": {
			[]*services.Export{export("c2", -54*years), export("c3", 1)},
			Precedence{Seen: seen(map[string]int{"c2": 60, "c3": 0})},
			"c3 c2", "its export is the oldest, since 2026-01-02T03:04:06Z",
		},
		"clusters that were there before are equally old": {
			[]*services.Export{export("c3", -54*years), export("c2", -1)},
			Precedence{Seen: seen(map[string]int{"c2": 0, "c3": 0})},
			"c2 c3", "of the oldest exports, of 2026-01-02T03:04:05Z, its name is the first",
		},
		"nothing is of the future": {
			[]*services.Export{export("c3", 54*years), export("c2", 55*years), export("c4", 9)},
			Precedence{Now: at(10)},
			"c4 c2 c3", "its export is the oldest, since 2026-01-02T03:04:14Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			order := test.by.Order(test.exports)
			if got := strings.Join(order, " "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			test.by.Sort(test.exports)
			if got := test.by.why(test.exports[0], test.exports[1]); got != test.why {
				t.Errorf("%q, want %q", got, test.why)
			}
		})
	}
}

// For any exports and withdrawals of remotes, and any restarts of the operator, a cluster counts until it withdraws,
// and the own cluster whenever it exports the service.
func TestWhoCountsStays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports, winner := make(map[string]*services.Export), ""
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			cluster := rapid.SampledFrom([]string{"c1", "c2", "c3", "c4"}).Draw(t, "cluster")
			if delete(exports, cluster); rapid.Bool().Draw(t, "exports") {
				exports[cluster] = export(cluster, rapid.IntRange(-54*years, 54*years).Draw(t, "date"))
			}
			var all []*services.Export
			for _, e := range exports {
				all = append(all, e)
			}
			f := facts()
			started := f.Now.Add(time.Duration(rapid.IntRange(-9, 9).Draw(t, "since")) * time.Hour)
			f.Winner, f.Seen = winner, func(string) time.Time { return started }
			if exports["c1"] != nil {
				f.Export = &OwnExport{Service: service()}
			}
			w := Make("shop", "cart", all, f)
			if len(all) == 0 {
				winner = ""
				continue
			}
			got := w.Import.Annotations[AnnotationWinner]
			switch {
			case exports["c1"] != nil && got != "c1":
				t.Fatalf("%s counts before the own cluster", got)
			case exports["c1"] == nil && exports[winner] != nil && got != winner:
				t.Fatalf("%s counts, and %s did", got, winner)
			case exports[got] == nil:
				t.Fatalf("%q does not export it", got)
			}
			winner = got
		}
	})
}

// Labels and annotations of remotes are on own objects only as far as they are allowed.
func TestLabelsAndAnnotationsOfRemotesAreAllowedByKey(t *testing.T) {
	t.Parallel()
	remote := []*services.Export{export("c2", 0,
		labels(map[string]string{"team": "a", "example.com/x": "1", "other.com/x": "1"}),
		annotations(map[string]string{AnnotationSlices: "true", "example.com/x": "1", "note": "n", "mesh.cilium.io/x": "1"}))}
	for name, test := range map[string]struct {
		labels, annotations string
		want                string // keys of the derived Service
		slices              string
	}{
		"none":                     {"", "", "", SlicesAbsent},
		"by name":                  {"team", "note", "team note", SlicesAbsent},
		"by domain":                {"example.com/*", "example.com/*", "example.com/x example.com/x", SlicesAbsent},
		"of Cilium":                {"", "service.cilium.io/*", AnnotationSlices, SlicesPresent},
		"what steers the mesh":     {"", "mesh.cilium.io/*, mesh-agent.io/*", "", SlicesAbsent},
		"a domain is no beginning": {"", "example.co/*", "", SlicesAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := facts()
			var err error
			f.Labels, err = ParseAllowed(test.labels)
			if err == nil {
				f.Annotations, err = ParseAllowed(test.annotations)
			}
			w := Make("shop", "cart", remote, f)
			var got []string
			for _, key := range []string{"team", "example.com/x", "other.com/x"} {
				if w.Derived.Labels[key] != "" && w.Import.Labels[key] != "" {
					got = append(got, key)
				}
			}
			for _, key := range []string{AnnotationSlices, "example.com/x", "note", "mesh.cilium.io/x"} {
				if w.Derived.Annotations[key] != "" && w.Import.Annotations[key] != "" {
					got = append(got, key)
				}
			}
			if got := strings.Join(got, " "); err != nil || got != test.want || w.Import.Status.EndpointSliceObjects != test.slices {
				t.Errorf("%q, %s, %v", got, w.Import.Status.EndpointSliceObjects, err)
			}
		})
	}
	for _, wrong := range []string{"*", "a*", "a b", "/*", "a/b/*", "example.com/a*"} {
		if _, err := ParseAllowed("team," + wrong); err == nil {
			t.Errorf("%q is a key", wrong)
		}
	}
	if !(Allowed{"Team"}).has("Team") || (Allowed{"team"}).has("Team") {
		t.Error("keys are compared in their case")
	}
}
