package selector

import (
	"maps"
	"testing"
)

func TestSelector(t *testing.T) {
	t.Parallel()
	labels := map[string]string{
		"app": "web", "tier": "", "k8s:io.kubernetes.pod.namespace": "default", "reserved:host": "",
		"k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name": "default",
	}
	for text, want := range map[string]bool{
		"app":                                 true,
		"!app":                                false,
		"app=web":                             true,
		"app==web":                            true,
		" app = web , tier":                   true,
		"app=web,tier=":                       true,
		"app=web,tier=x":                      false,
		"app!=web":                            false,
		"app!=db":                             true,
		"missing!=db":                         true,
		"missing=":                            false,
		"app in (web, db)":                    true,
		"app in (db)":                         false,
		"app notin (web,db)":                  false,
		"app notin (db),tier":                 true,
		"missing notin (a)":                   true,
		"io.kubernetes.pod.namespace=default": true,
		"k8s:io.kubernetes.pod.namespace=default": true,
		"any:io.kubernetes.pod.namespace=default": false,
		"reserved:host": true,
		"io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name=default": true,
	} {
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := s.Matches(maps.All(labels)); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
	for _, text := range []string{"", ",", "app,", "=web", "!=web", "app in web", "app in (web", "app out (web)", "in (a)", "a b", "!", "a in (b),(c)", "!a=b", "a>1", "a<1"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q is taken for %+v", text, s)
		}
	}
}

func FuzzSelector(f *testing.F) {
	for _, text := range []string{"app=web,tier", "!a", "a in (b,c),d!=e", "a notin ()", "(((", "a in (", "=,!"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		for _, r := range s {
			if r.key == "" {
				t.Fatalf("%q: a requirement without a key", text)
			}
		}
		s.Matches(maps.All(map[string]string{"a": "b"}))
	})
}
