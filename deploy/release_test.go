package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheVersionsOfAReleaseAgree: the chart has the version of the first heading of CHANGELOG.md, which is the coming
// release or the last one, and the program's version is the tag with it.
func TestTheVersionsOfAReleaseAgree(t *testing.T) {
	t.Parallel()
	find := func(file, pattern string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(readFile(t, filepath.Join(context, file)))
		if found == nil {
			t.Fatalf("%s has no line %s", file, pattern)
		}
		return found[1]
	}
	heading := find("CHANGELOG.md", `^## (.*)$`)
	version := regexp.MustCompile(`^(?:Unreleased: )?(\d+\.\d+\.\d+)(?: - \d{4}-\d\d-\d\d)?$`).FindStringSubmatch(heading)
	if version == nil {
		t.Fatalf("the first heading of CHANGELOG.md is %q, want \"Unreleased: 1.2.3\" or \"1.2.3 - 2006-01-02\"", heading)
	}
	const chart = "deploy/chart/Chart.yaml"
	if is := find(chart, `^version: (\S+)$`); is != version[1] {
		t.Errorf("%s has the version %s, CHANGELOG.md %s", chart, is, version[1])
	}
	if is := find(chart, `^appVersion: (\S+)$`); is != "v"+version[1] {
		t.Errorf("%s has the appVersion %s, want the tag v%s", chart, is, version[1])
	}
}

// TestTheVersionOfPackages: package managers sort the versions as the commits are.
func TestTheVersionOfPackages(t *testing.T) {
	t.Parallel()
	var sorted []string
	for _, c := range []struct{ described, want string }{
		{"abc1234", "0.0.0-gabc1234"},
		{"abc1234-dirty", "0.0.0-gabc1234-dirty"},
		{"unknown", "0.0.0-gunknown"},
		{"v0.1.0-rc.1", "0.1.0-rc.1"},
		{"v0.1.0-rc.1-5-gabc1234", "0.1.0-rc.1+5.gabc1234"},
		{"v0.1.0", "0.1.0"},
		{"v0.1.0-5-gabc1234", "0.1.0+5.gabc1234"},
		{"v0.1.0-5-gabc1234-dirty", "0.1.0+5.gabc1234.dirty"},
		{"v0.1.0-12-gabc1234", "0.1.0+12.gabc1234"},
		{"v0.1.1", "0.1.1"},
	} {
		out, err := shell(t, "packages/version $1", c.described)
		if is := strings.TrimSpace(out); err != nil || is != c.want {
			t.Errorf("%s: %s, %v, want %s", c.described, is, err, c.want)
		}
		sorted = append(sorted, strings.Replace(c.want, "-", "~", 1)) // as nfpm writes it
	}
	needs(t, "dpkg")
	for i, version := range sorted[1:] {
		if out, err := shell(t, "dpkg --compare-versions $1 lt $2", sorted[i], version); err != nil {
			t.Errorf("%s is not before %s: %s", sorted[i], version, out)
		}
	}
}
