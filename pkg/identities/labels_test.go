package identities

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want map[string]string
	}{
		"none":                               {"", map[string]string{}},
		"one":                                {"k8s:app=x;", map[string]string{"k8s:app": "x"}},
		"several, unsorted":                  {"k8s:z=1;k8s:a=2;unspec:m=;", map[string]string{"k8s:z": "1", "k8s:a": "2", "unspec:m": ""}},
		"two sources with one bare key":      {"any:a=1;k8s:a=2;", map[string]string{"any:a": "1", "k8s:a": "2"}},
		"one twice":                          {"k8s:a=1;k8s:a=1;", map[string]string{"k8s:a": "1"}},
		"characters that mean something":     {"k8s:a=b=c:d;", map[string]string{"k8s:a": "b=c:d"}},
		"a reserved one with its own syntax": {"reserved:host=;", map[string]string{"reserved:host": ""}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := wire.ParseLabels(tc.text)
			ls := NewLabels(in)
			if diff := cmp.Diff(tc.want, ls.Map()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(in, ls.Wire()); diff != "" {
				t.Errorf("not as it was: %s", diff)
			}
			if diff := cmp.Diff(in, wire.Labels(slices.Collect(ls.All()))); diff != "" {
				t.Errorf("iterating: %s", diff)
			}
			if ls.String() != tc.text || len(ls.Wire()) != len(in) || ls != NewLabels(in) {
				t.Errorf("became %q with %d labels", ls, len(ls.Wire()))
			}
			for range ls.All() {
				break
			}
		})
	}
}

// TestLabelsSurvive: labels with random texts are returned unchanged.
func TestLabelsSurvive(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "=", ";", "\x00", strings.Repeat("long", 100), strings.Repeat("longer", 10000)}))
	rapid.Check(t, func(t *rapid.T) {
		in := wire.Labels(rapid.SliceOf(rapid.Custom(func(t *rapid.T) wire.Label {
			return wire.Label{Source: text.Draw(t, "source"), Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}
		})).Draw(t, "labels"))
		ls := NewLabels(in)
		if diff := cmp.Diff(in, ls.Wire(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if ls != NewLabels(slices.Clone(in)) {
			t.Fatal("not equal to itself")
		}
		if len(in) > 0 && (ls == NewLabels(in[1:]) || len(ls.Wire()) != len(in)) {
			t.Fatal("equal to a shorter list")
		}
	})
}

func TestEqual(t *testing.T) {
	t.Parallel()
	base := func() *Identity {
		return FromWire(wire.Identity{ID: 7, Labels: wire.ParseLabels("k8s:a=1;k8s:b=2;")}, "c2", 2)
	}
	if !base().Equal(base()) {
		t.Error("two equal identities differ")
	}
	changes := map[string]func(*Identity){
		"number":     func(i *Identity) { i.ID++ },
		"cluster":    func(i *Identity) { i.Cluster = "x" },
		"cluster ID": func(i *Identity) { i.ClusterID++ },
		"labels":     func(i *Identity) { i.Labels = NewLabels(wire.ParseLabels("k8s:a=1;")) },
	}
	for name, change := range changes {
		i := base()
		change(i)
		if i.Equal(base()) || base().Equal(i) {
			t.Errorf("a change of the %s was not noticed", name)
		}
	}
}
