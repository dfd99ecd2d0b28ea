package status

import (
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// The reasons for which status exits with 1.
const (
	failOnConflicts = "conflicts" // clusters have conflicting claims
	failOnRefusals  = "refusals"  // entries of a cluster are refused
	failOnDegraded  = "degraded"  // a cluster is not ready, or its data is not confirmed as current
	failOnNone      = "none"
)

// failures are the reasons that status checks.
type failures []string

func allFailures() failures { return failures{failOnConflicts, failOnRefusals, failOnDegraded} }

func (f failures) String() string {
	if len(f) == 0 {
		return failOnNone
	}
	return strings.Join(f, ",")
}

func (failures) Type() string { return "list" }

func (f *failures) Set(text string) error {
	var all failures
	none := false
	for one := range strings.SplitSeq(text, ",") {
		switch one = strings.TrimSpace(one); {
		case one == failOnNone:
			none = true
		case slices.Contains(allFailures(), one):
			all = append(all, one)
		default:
			return exit.Usagef("%q: want some of %s, separated by commas, or %s", one, allFailures(), failOnNone)
		}
	}
	if none && len(all) > 0 {
		return exit.Usagef("%q: %s goes with nothing else", text, failOnNone)
	}
	*f = all
	return nil
}

// found returns the reasons that apply, for all clusters or for one. A conflict is between several clusters, so it is
// not part of the state of one.
func (f failures) found(st *api.Status, cluster string) []string {
	clusters := st.Clusters
	if cluster != "" {
		clusters = []api.Cluster{*ClusterNamed(st.Clusters, cluster)}
	}
	refuses := func(c api.Cluster) bool { return len(c.Refusals) > 0 }
	is := map[string]bool{
		failOnConflicts: cluster == "" && st.Summary.Conflicts > 0,
		failOnRefusals:  slices.ContainsFunc(clusters, refuses),
		failOnDegraded:  !wellOn(st, cluster),
	}
	var found []string
	for _, one := range allFailures() {
		if is[one] && slices.Contains(f, one) {
			found = append(found, one)
		}
	}
	return found
}
