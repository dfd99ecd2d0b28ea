package wire

import (
	"strings"
	"testing"
)

// TestEveryResourceIsDescribed: each description is complete and different from the others.
func TestEveryResourceIsDescribed(t *testing.T) {
	t.Parallel()
	seen := make(map[string]Resource)
	for _, r := range Resources() {
		d := r.Describe()
		if d.Keys <= 0 || d.Bytes <= 0 || d.CopyBytes <= 0 || d.CopyBytes > d.Bytes || d.Optional && d.DetailOf != "" {
			t.Errorf("%s: %+v", r, d)
		}
		if !strings.EqualFold(d.Field, string(r)) || d.Path == string(r)+"/" {
			t.Errorf("%s has the field %q and the path %q", r, d.Field, d.Path)
		}
		for _, name := range []string{"path " + d.Path, "one " + d.One, "many " + d.Many, "field " + d.Field} {
			if other, taken := seen[name]; taken {
				t.Errorf("%s and %s have the same %s", r, other, name)
			}
			seen[name] = r
		}
	}
	if d := Resource("gateways").Describe(); d.Path != "gateways/v1" || d.Many != "gateways" {
		t.Errorf("an unknown one: %+v", d)
	}
}

func TestDetails(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{EndpointSlicesServicesOnly: true, EndpointSlicesBoth: true, EndpointSlicesOnly: false} {
		caps := Capabilities{EndpointSlicesExportMode: mode}
		if caps.Details(EndpointSlices) != want || caps.Details(Services) {
			t.Errorf("%q: slices are details: %t", mode, !want)
		}
	}
}
