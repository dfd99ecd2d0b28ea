package kvstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/go-semver/semver"
)

// ServerFault is a fault of etcd releases that breaks a guarantee on which a reader relies. The source is the
// change log of each release.
type ServerFault struct {
	// Name is short and stable, such as "stale-reads".
	Name string
	// Effect describes the possible consequences, for people.
	Effect string
	// Since is the first release that has the fault; empty: all of 3.4 and later.
	Since string
	// Fixed are the first releases without the fault, at most one for each minor version, in ascending order. All
	// minor versions before the first of them have the fault; minor versions after the last of them do not.
	Fixed []string
}

// faultProgress is the name of a fault that changes the behaviour of this program ([ProgressReliable]).
const faultProgress = "progress-ahead"

// serverFaults are the known faults, the worst first.
func serverFaults() []ServerFault {
	return []ServerFault{
		{
			Name: "rights-in-transactions", Fixed: []string{"3.4.44", "3.5.30", "3.6.11"},
			Effect: "it does not check rights within transactions: any client that can connect reads and writes all keys",
		},
		{
			Name: "rights-of-watches", Fixed: []string{"3.5.33", "3.6.14", "3.7.1"},
			Effect: "it does not check the end of a watch: a user that may read one key can watch all keys after it",
		},
		{
			Name: "stale-reads", Fixed: []string{"3.4.42", "3.5.28", "3.6.9"},
			Effect: "after a pause of a member, a linearizable read can be stale: data can be called fresh although newer data exists",
		},
		{
			Name: "inconsistent-members", Since: "3.5.0", Fixed: []string{"3.5.3"},
			Effect: "a crash can leave members with different data",
		},
		{
			Name: "inconsistent-after-defragmentation", Fixed: []string{"3.4.22", "3.5.6"},
			Effect: "a crash during defragmentation can leave members with different data",
		},
		{
			Name: "lost-writes", Fixed: []string{"3.4.21", "3.5.5"},
			Effect: "a server with one member can lose confirmed writes in a crash",
		},
		{
			Name: "lost-events", Fixed: []string{"3.4.31", "3.5.13"},
			Effect: "a watch can lose events after a compaction: the agent then finds the difference only at the next list",
		},
		{
			Name: "wrong-lease-ends", Fixed: []string{"3.4.31", "3.5.13"},
			Effect: "a former leader can end leases that are in use: nodes and addresses of the cluster can disappear",
		},
		{
			Name: faultProgress, Fixed: []string{"3.4.25", "3.5.8"},
			Effect: "it can report progress before the events: the agent does not use these reports",
		},
	}
}

// ServerFaults are the known faults of a version of etcd, the worst first. A text that is not a version has none,
// for example the version of a server that imitates etcd.
func ServerFaults(version string) (has []ServerFault) {
	v, err := semver.NewVersion(version)
	if err != nil {
		return nil
	}
	for _, f := range serverFaults() {
		if f.in(*v) {
			has = append(has, f)
		}
	}
	return has
}

// DescribeFaults describes, for people, the known faults of a version of etcd and the release without them; empty
// when the version has no known fault.
func DescribeFaults(version string) string {
	faults := ServerFaults(version)
	if len(faults) == 0 {
		return ""
	}
	effects := make([]string, len(faults))
	for i, f := range faults {
		effects[i] = f.Effect
	}
	return fmt.Sprintf("%s has known faults, and %s has none of them: %s", version, ReleaseWithout(version), strings.Join(effects, "; "))
}

// ReleaseWithout returns the first release after a version that has no known fault; empty if the text is not a version.
func ReleaseWithout(version string) string {
	v, err := semver.NewVersion(version)
	if err != nil {
		return ""
	}
	var releases []*semver.Version
	for _, f := range serverFaults() {
		for _, text := range f.Fixed {
			if fixed := semver.New(text); v.LessThan(*fixed) && len(ServerFaults(text)) == 0 {
				releases = append(releases, fixed)
			}
		}
	}
	if len(releases) == 0 {
		return version
	}
	return slices.MinFunc(releases, func(a, b *semver.Version) int { return a.Compare(*b) }).String()
}

// ProgressReliable reports whether a version of etcd never reports progress ahead of the events (etcd issue 15220). It
// returns false for a text that is not a version, because nothing is known about that server.
func ProgressReliable(version string) bool {
	v, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	for _, f := range serverFaults() {
		if f.Name == faultProgress {
			return !f.in(*v)
		}
	}
	return false
}

// in reports whether a version has the fault. The versions of the table are valid.
func (f *ServerFault) in(v semver.Version) bool {
	v.PreRelease, v.Metadata = "", "" // a pre-release counts as its release
	if f.Since != "" && v.LessThan(*semver.New(f.Since)) {
		return false
	}
	for _, text := range f.Fixed {
		if fixed := semver.New(text); v.Major < fixed.Major || v.Major == fixed.Major && v.Minor <= fixed.Minor {
			return v.LessThan(*fixed)
		}
	}
	return false
}
