package allocator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	const paths = wire.AllocationPaths("base")
	name := func(text, node string) string { return paths.Reference(text, node)[len(paths.References()):] }
	for what, c := range map[string]struct {
		text, name, value string
		uses              bool
	}{
		"its text and number":                {"a;b;", name("a;b;", "n"), "7", true},
		"of another node":                    {"a;b;", name("a;b;", "10.0.0.1"), "7", true},
		"with leading zeroes":                {"a;b;", name("a;b;", "n"), "007", true},
		"another number":                     {"a;b;", name("a;b;", "n"), "8", false},
		"a longer text":                      {"a;", name("a;b;", "n"), "7", false},
		"a text that ends in a path element": {"a", name("a/b", "n"), "7", false},
		"slashes in a row are one":           {"a//b", name("a/b", "n"), "7", true},
		"a slash in front":                   {"/a", name("/a", "n"), "7", true},
		"no number":                          {"a", name("a", "n"), "x", false},
		"no node":                            {"a", "a", "7", false},
		"no key":                             {"", "/n", "7", false},
		"nothing is no labels":               {"", name("", "n"), "7", false},
		"what no reader takes for labels":    {";;", name(";;", "n"), "7", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			u := NewUsage()
			u.Mapping(7, c.text, 5)
			u.Mapping(9, "far away", 6)
			uses := false
			if key, _, id, err := ReadReference(c.name, []byte(c.value)); err == nil {
				uses, _ = u.Reference(key, id)
			}
			if uses != c.uses || u.InUse(7) != c.uses {
				t.Errorf("%q uses %q: %v, in use %v", c.name, c.text, uses, u.InUse(7))
			}
			want := StaleIDs{7: 5}
			if c.uses {
				want = StaleIDs{}
			}
			if diff := cmp.Diff(want, u.Unused(1, 8)); diff != "" {
				t.Error(diff)
			}
			if u.Len(1, 8) != 1 || u.Len(1, 9) != 2 || !slices.Equal(u.Unused(9, 9).IDs(), []uint64{9}) {
				t.Error("the range is not kept")
			}
		})
	}
}

func TestMappingID(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]uint64{"7": 7, "131072": 131072, "07": NoID, "0": NoID, "": NoID, "x": NoID, "7/8": NoID, "-1": NoID} {
		if id, err := MappingID(name); (err == nil) != (want != NoID) || err == nil && id != want {
			t.Errorf("%q: %d, %v, want %d", name, id, err, want)
		}
	}
}
