package kvstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-semver/semver"
)

// TestServerFaults has the versions before and after each fix.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"3.7.1":       "",
		"3.8.0":       "",
		"4.0.0":       "",
		"3.7.0":       "rights-of-watches",
		"3.6.14":      "",
		"3.6.13":      "rights-of-watches",
		"3.6.10":      "rights-in-transactions rights-of-watches",
		"3.6.8":       "rights-in-transactions rights-of-watches stale-reads",
		"3.5.33":      "",
		"3.5.29":      "rights-in-transactions rights-of-watches",
		"3.5.27":      "rights-in-transactions rights-of-watches stale-reads",
		"3.5.13":      "rights-in-transactions rights-of-watches stale-reads",
		"3.5.12":      "rights-in-transactions rights-of-watches stale-reads lost-events wrong-lease-ends",
		"3.5.7":       "rights-in-transactions rights-of-watches stale-reads lost-events wrong-lease-ends progress-ahead",
		"3.5.2":       "rights-in-transactions rights-of-watches stale-reads inconsistent-members inconsistent-after-defragmentation lost-writes lost-events wrong-lease-ends progress-ahead",
		"3.4.44":      "rights-of-watches", // all releases of 3.4 have this fault
		"3.4.41":      "rights-in-transactions rights-of-watches stale-reads",
		"3.4.20":      "rights-in-transactions rights-of-watches stale-reads inconsistent-after-defragmentation lost-writes lost-events wrong-lease-ends progress-ahead",
		"3.6.14-rc.0": "",
		"":            "",
		"kine":        "",
		"3":           "",
	} {
		var names []string
		for _, f := range ServerFaults(version) {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q has %q, want %q", version, got, want)
		}
	}
}

func TestReleaseWithout(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"3.4.44": "3.5.33", "3.5.12": "3.5.33", "3.6.12": "3.6.14", "3.7.0": "3.7.1", "3.7.3": "3.7.3", "kine": ""} {
		if got := ReleaseWithout(version); got != want || len(ServerFaults(got)) > 0 {
			t.Errorf("%s after %s, want %s", got, version, want)
		}
	}
}

func TestTheTableOfFaultsIsSound(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, f := range serverFaults() {
		if seen[f.Name] || f.Name == "" || f.Effect == "" || len(f.Fixed) == 0 {
			t.Errorf("%+v", f)
		}
		seen[f.Name] = true
		var last semver.Version
		for _, text := range append(slices.DeleteFunc([]string{f.Since}, func(s string) bool { return s == "" }), f.Fixed...) {
			v, err := semver.NewVersion(text)
			if err != nil || !last.LessThan(*v) {
				t.Fatalf("%s: %q after %s: %v", f.Name, text, last, err)
			}
			last = *v
		}
	}
	if !seen[faultProgress] {
		t.Errorf("%s is not in the table", faultProgress)
	}
}

func TestProgressReliable(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"3.4.24": false, "3.4.25": true, "3.5.7": false, "3.5.8": true, "3.6.0": true, "4.0.0": true, "3.3.27": false, "": false, "kine": false} {
		if ProgressReliable(version) != want {
			t.Errorf("%q: %t", version, !want)
		}
	}
}
