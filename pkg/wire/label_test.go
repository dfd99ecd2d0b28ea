package wire

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGoldenSourcePrecedence(t *testing.T) {
	t.Parallel()
	v := golden[struct {
		Strongest []string                   `json:"strongest_first"`
		Allowed   map[string]map[string]bool `json:"existing_then_new_allowed"`
	}](t, "source_overwrite.json")
	for existing, row := range v.Allowed {
		for replacement, want := range row {
			if got := ParseSource(replacement).MayReplace(ParseSource(existing)); got != want {
				t.Errorf("%q may replace %q: %v, want %v", replacement, existing, got, want)
			}
		}
	}
	var names []string
	for s := SourceKubeAPIServer; s > SourceUnknown; s-- {
		names = append(names, s.String())
		if ParseSource(s.String()) != s {
			t.Errorf("%s does not read as itself", s)
		}
	}
	if d := cmp.Diff(v.Strongest, names); d != "" {
		t.Error(d)
	}
	if SourceUnknown.String() != "" || Source(200).String() != "" {
		t.Error("an unknown source has a name")
	}
}

func TestGoldenServiceAnnotations(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]struct {
		Annotations    map[string]string
		Global, Shared bool
		Affinity       Affinity
		AffinityError  string `json:"affinity_error"`
	}](t, "service_annotations.json") {
		got, err := ParseServiceAnnotations(c.Annotations)
		checkOutcome(t, err, c.AffinityError == "", c.AffinityError)
		if want := (ServiceAnnotations{Global: c.Global, Shared: c.Shared, Affinity: c.Affinity}); got != want {
			t.Errorf("%v: got %+v, want %+v", c.Annotations, got, want)
		}
	}
}

func TestGlobalNamespaces(t *testing.T) {
	t.Parallel()
	with := func(value string) map[string]string { return map[string]string{AnnotationGlobalNamespace: value} }
	for _, c := range []struct {
		annotations     map[string]string
		byDefault, want bool
	}{
		{nil, true, true},
		{nil, false, false},
		{with("TRUE"), false, true},
		{with("false"), true, false},
		{with("yes"), true, false},
	} {
		if got := NamespaceIsGlobal(c.annotations, c.byDefault); got != c.want {
			t.Errorf("%v with default %v: %v", c.annotations, c.byDefault, got)
		}
	}
}

func TestGoldenLabelStringsAreParsedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]struct {
		Input     string
		Labels    []string `json:"labels_source_key_value"`
		Reencoded string
	}](t, "identity_label_parsing.json") {
		labels := ParseLabels(c.Input)
		if d := cmp.Diff(c.Labels, bars(labels)); d != "" {
			t.Errorf("%q: %s", c.Input, d)
		}
		same(t, c.Input, labels.String(), c.Reencoded)
	}
}

func TestGoldenLabelsAreEncodedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, c := range golden[[]rule[map[string]string, string]](t, "identity_label_encoding.json") {
		got := LabelsFromMap(c.Input).Encode()
		if c.Output == "1 label kept" {
			if n := len(ParseLabels(got)); n != 1 {
				t.Errorf("%v: %d labels kept", c.Input, n)
			}
			continue
		}
		same(t, fmt.Sprint(slices.Sorted(maps.Keys(c.Input))), got, c.Output)
	}
}

func TestAValueWithASemicolonIsNotEscaped(t *testing.T) {
	t.Parallel()
	labels := Labels{{"k8s", "weird", "a;b"}, {"k8s", LabelCluster, "cluster2"}}
	same(t, "encoded", labels.Encode(), "k8s:io.cilium.k8s.policy.cluster=cluster2;k8s:weird=a;b;")
	if l, ok := labels.Get("weird"); !ok || l.Value != "a;b" {
		t.Error(l, ok)
	}
	if _, ok := labels.Get("other"); ok {
		t.Error("found a label that is not there")
	}
}

func TestLabelsWithoutAKeyDoNotCount(t *testing.T) {
	t.Parallel()
	labels := LabelsFromMap(map[string]string{"k8s:": "x", "": "y", "k8s:a": "1"})
	if d := cmp.Diff(Labels{{"k8s", "a", "1"}}, labels); d != "" {
		t.Error(d)
	}
}
