package status

import (
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// What makes status exit with 1.
const (
	failOnConflicts = "conflicts" // clusters disagree on something
	failOnRefusals  = "refusals"  // entries of a cluster are refused
	failOnDegraded  = "degraded"  // a cluster is not ready, or not known as of now
	failOnNone      = "none"
)

// failures are those that status looks for.
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

// found are those of them that there are, of all clusters or of one. A conflict is
// about several, and is none of the state of one.
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
