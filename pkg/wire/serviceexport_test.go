package wire

import "testing"

// TestDerivedServiceName checks the vectors of mcs.md B.
func TestDerivedServiceName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ namespace, name, want string }{
		{"my-ns", "my-svc", "derived-a2v4k9sqn6"},
		{"default", "rebel-base", "derived-q358ba8kk0"},
		{"test", "myservice", "derived-ugeabue9o3"},
	} {
		if got := DerivedServiceName(test.namespace, test.name); got != test.want {
			t.Errorf("%s/%s: %s, want %s", test.namespace, test.name, got, test.want)
		}
	}
}
