package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// The maximum numbers that a reason names.
const (
	mostCauses = 3 // the rest is counted
	mostNames  = 3 // of clusters with one cause
)

// Ready is the kind of clusters with nothing wrong, in [Counts].
const Ready = "ready"

// Problem is the problem of one cluster.
type Problem struct {
	Cluster string
	Kind    api.TroubleKind // empty for none
	Code    codes.Code      // of its message
	Cause   codes.Code      // of the error behind the message; empty when that is not known
	// Also names, in a few words, another point that needs attention, in a cluster with nothing wrong; empty for
	// none.
	Also string
}

// The points that need attention in a cluster with nothing else wrong.
const (
	NotUsed = "service backends are not used as usual"
	Refused = "entries are refused"
)

// Urgent describes a notice of a cluster with nothing wrong, in a few words; empty unless the notice is an error.
func Urgent(notice codes.Code) string {
	if e, known := codes.Find(string(notice)); known && e.Severity == codes.Error {
		return e.Title
	}
	return ""
}

// OwnKVStore is the problem of an own kvstore that is not well.
func OwnKVStore(code codes.Code) Problem {
	return Problem{Cluster: "the own kvstore", Kind: api.TroubleDegraded, Code: code}
}

// OwnDescription is the problem of a description of the own cluster that cannot be read.
func OwnDescription() Problem {
	return Problem{Kind: api.TroubleDegraded, Cluster: "the own cluster", Code: codes.DescriptionBroken}
}

// Ignored is the problem of files of the mesh directory that belong to no cluster, although a user may have meant
// them; without any it is none.
func Ignored(n int) Problem {
	switch n {
	case 0:
		return Problem{}
	case 1:
		return Problem{Cluster: "1 file", Also: "the agent ignores a file of the mesh directory"}
	}
	return Problem{Cluster: fmt.Sprintf("%d files", n), Also: "the agent ignores files of the mesh directory"}
}

// Conflicts is the problem of clusters that may have no other; without any conflicts it is none.
func Conflicts(n int) Problem {
	switch n {
	case 0:
		return Problem{}
	case 1:
		return Problem{Cluster: "1 conflict", Also: "clusters disagree"}
	}
	return Problem{Cluster: fmt.Sprintf("%d conflicts", n), Also: "clusters disagree"}
}

// Kinds are all kinds of trouble, the worst first.
func Kinds() []api.TroubleKind {
	return []api.TroubleKind{
		api.TroubleFailed, api.TroubleConnecting, api.TroubleLost, api.TroubleDegraded,
		api.TroubleStale, api.TroubleSyncing, api.TroubleRemoving,
	}
}

// Counts are how many clusters there are of each kind, [Ready] for those with nothing wrong. Each
// cluster counts once.
func Counts(all []Problem) map[string]int {
	counts := make(map[string]int)
	for _, p := range all {
		counts[cmp.Or(string(p.Kind), Ready)]++
	}
	return counts
}

// Reason names the problems on one line, with their clusters, the worst first; empty when there are none.
func Reason(all []Problem) string {
	all = slices.DeleteFunc(slices.Clone(all), func(p Problem) bool { return p.title() == "" })
	slices.SortStableFunc(all, func(a, b Problem) int { return a.severity() - b.severity() })
	var causes []string
	clusters := make(map[string][]string)
	for _, p := range all {
		cause := p.title()
		if clusters[cause] == nil {
			causes = append(causes, cause)
		}
		clusters[cause] = append(clusters[cause], p.Cluster)
	}
	var parts []string
	for _, cause := range causes[:min(len(causes), mostCauses)] {
		parts = append(parts, fmt.Sprintf("%s (%s)", cause, some(clusters[cause])))
	}
	text := strings.Join(parts, "; ")
	if rest := len(causes) - len(parts); rest > 0 {
		text += fmt.Sprintf("; and %d more", rest)
	}
	return text
}

// severity is the place of a problem among the others, the worst first.
func (p Problem) severity() int {
	if i := slices.Index(Kinds(), p.Kind); i >= 0 {
		return i
	}
	return len(Kinds())
}

// title names the problem in a few words; empty when there is none.
func (p Problem) title() string {
	if p.Kind == "" {
		return p.Also
	}
	if p.Code == codes.NotConnectedYet && p.Cause == "" { // which may be its first attempt
		return "not connected yet"
	}
	for _, code := range []codes.Code{p.Cause, p.Code} {
		if e, known := codes.Find(string(code)); known {
			return e.Title
		}
	}
	switch p.Kind { // states without a code
	case api.TroubleFailed:
		return "cannot be used as configured"
	case api.TroubleConnecting:
		return "not connected yet"
	case api.TroubleLost:
		return "the connection is lost"
	case api.TroubleStale:
		return "not confirmed for too long"
	case api.TroubleSyncing:
		return "the first copy is under way"
	case api.TroubleRemoving:
		return "the cluster is being removed"
	}
	return "not well"
}

// some names the first ones, and counts the others.
func some(names []string) string {
	if rest := len(names) - mostNames; rest > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), rest)
	}
	return strings.Join(names, ", ")
}
