package identities

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func FuzzParseKey(f *testing.F) {
	for _, text := range []string{"1", "131072/c2", "/", "1/", "x/c", "4294967296", "1/c/d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseKey(text)
		if (err == nil) != (len(key) >= 4) {
			t.Errorf("%q became %v, %v", text, key, err)
		}
	})
}

// FuzzLabels: the compact form returns every label string that was parsed.
func FuzzLabels(f *testing.F) {
	for _, text := range []string{"", "k8s:a=1;k8s:b=2;", "$host", "a", ";;", "k8s:a=b=c;", "reserved:==x;", ":=;"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := wire.ParseLabels(text)
		ls := NewLabels(in)
		if diff := cmp.Diff(in, ls.Wire(), cmpopts.EquateEmpty()); diff != "" || len(ls.Wire()) != len(in) {
			t.Error(diff)
		}
	})
}
