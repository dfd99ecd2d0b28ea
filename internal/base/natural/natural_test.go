package natural

import "testing"

func TestCompare(t *testing.T) {
	t.Parallel()
	want := []string{"", "2", "10", "a", "a-1", "a01", "a1", "a1b", "a2", "a2b10", "a2b20", "a10", "a18446744073709551616", "a99999999999999999999", "b"}
	for i, a := range want {
		for j, b := range want {
			got := Compare(a, b)
			if same := a == b; same != (got == 0) || got != -Compare(b, a) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
			if i < j && got >= 0 {
				t.Errorf("%q does not come before %q", a, b)
			}
		}
	}
}
