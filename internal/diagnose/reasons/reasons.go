// Package reasons explains: why a service is or is not global, which cluster owns an address, and the known facts
// about an identity, a node, a cluster.
//
// An [Explanation] is a chain of steps, each with the keys that were read for it, and ends in a verdict; every step
// and the verdict carry a code of the registry. It is derived from the state of the tables and the controllers at one
// moment and decides nothing by itself: the rules are those of the packages that own them.
//
// Concurrency: [Facts] are read by one goroutine at a time; the functions have no state and cannot fail. An object
// that no cluster has is explained, too.
//
// # Design
//
// An explanation asks the rules of the packages that own them, and adds which key was read, at which revision, and
// when at the latest: a store.Set knows the revision of each key, and its follower the time of its latest revisions.
// Absent objects are explained as well: a step says that a cluster does not have an object only if the cluster is
// known as of now.
package reasons

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Facts are the state to explain: tables of one moment, and earlier statuses of the clusters.
type Facts struct {
	*clustermesh.Tables
	Txn       statedb.ReadTxn
	Clusters  map[string]remotecluster.Status // by name, the own one included when it is read
	Own       string                          // the own cluster's name; empty for an observer, which is of none
	Described bool                            // the own cluster's services are known from its description, as of now
	Unread    bool                            // they are to come from its description, which was not read yet
	// Find returns the known facts about a key; false if there are none.
	Find func(cluster string, r wire.Resource, name string) (store.Found, bool)
}

func verdictf(code codes.Code, format string, args ...any) api.Verdict {
	return api.Verdict{Code: code, Text: fmt.Sprintf(format, args...)}
}

// names are the clusters and these others, in their natural order, each once.
func (v *Facts) names(others ...string) []string {
	all := append(slices.Collect(maps.Keys(v.Clusters)), others...)
	slices.SortFunc(all, natural.Compare)
	return slices.Compact(all)
}

// keys are those of these names that are known.
func (v *Facts) keys(cluster string, r wire.Resource, names ...string) []api.Key {
	keys := []api.Key{}
	for _, name := range names {
		f, known := v.Find(cluster, r, name)
		if !known {
			continue
		}
		k := api.Key{Key: f.Key, Revision: f.Revision}
		if f.Reason != "" {
			k.Refused = cmp.Or(f.Why, string(f.Reason))
		}
		if !f.Read.IsZero() {
			k.Read = new(f.Read.UTC())
		}
		keys = append(keys, k)
	}
	return keys
}

// refusal is why one of the keys is refused; empty when none is.
func refusal(keys []api.Key) string {
	for _, k := range keys {
		if k.Refused != "" {
			return k.Refused
		}
	}
	return ""
}

// asOf returns the time until which all of some resources of a cluster are known, and reports whether that is as of
// now. Nothing is known of a cluster that the agent does not read.
func (v *Facts) asOf(cluster string, of ...wire.Resource) (at *time.Time, now bool) {
	c, known := v.Clusters[cluster]
	if !known {
		return nil, cluster == v.Own && v.Described && slices.Contains(of, wire.Services)
	}
	f, exported := c.FreshnessOf(of...)
	switch {
	case !exported:
		return nil, true
	case f.AsOf.IsZero():
		return nil, false
	}
	return new(f.AsOf.UTC()), f.State == remotecluster.FreshnessSynced
}

// unconfirmed says since when something is not known, and why.
func (v *Facts) unconfirmed(cluster string, at *time.Time) string {
	c, known := v.Clusters[cluster]
	switch {
	case !known && cluster == v.Own && v.Unread:
		return "the description of this cluster was not read yet"
	case !known:
		return "this agent does not read that cluster"
	}
	text := "was never copied completely"
	if at != nil {
		text = "not confirmed since " + at.Format(time.RFC3339)
	}
	if c.Message != "" {
		text += fmt.Sprintf(" (%s %s)", c.Code, c.Message)
	}
	return text
}

// list is "a, b and c", and of many the first ones.
func list(names []string) string { return printer.List(names, 5) }

// ordered is the list of clusters of which none comes before the others.
func ordered(names []string) string {
	return list(slices.SortedFunc(slices.Values(names), natural.Compare))
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// refusedOf returns how many entries of some resources of a cluster are refused, and why; empty for none. A copy that
// is known as of now lacks them: the cluster may have entries that the copy does not have.
func (v *Facts) refusedOf(cluster string, of ...wire.Resource) string {
	return v.refusedBut(nil, cluster, of...)
}

// refusedBut is refusedOf without the entries that are refused for one of these reasons.
func (v *Facts) refusedBut(leaveOut []wire.Reason, cluster string, of ...wire.Resource) string {
	var texts []string
	for _, r := range of {
		if text := refusedText(v.Clusters[cluster].Families[r], leaveOut...); text != "" {
			n, why, _ := strings.Cut(text, " ")
			texts = append(texts, fmt.Sprintf("%s of its %s are refused: %s", n, r.Describe().Many, why))
		}
	}
	return strings.Join(texts, "; ")
}

// refusedText is how many entries of a resource are refused, and why, the most
// frequent reason first.
func refusedText(src remotecluster.FamilyStatus, leaveOut ...wire.Reason) string {
	reasons := slices.Collect(maps.Keys(src.Rejections))
	reasons = slices.DeleteFunc(reasons, func(r wire.Reason) bool { return src.Rejections[r] == 0 || slices.Contains(leaveOut, r) })
	slices.SortFunc(reasons, func(a, b wire.Reason) int {
		return cmp.Or(src.Rejections[b]-src.Rejections[a], cmp.Compare(a, b))
	})
	n, words := 0, make([]string, len(reasons))
	for i, r := range reasons {
		n += src.Rejections[r]
		words[i] = refusedFor(r, src)
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, strings.Join(words, ", "))
}

func refusedFor(r wire.Reason, src remotecluster.FamilyStatus) string {
	switch {
	case r == wire.ReasonBudget && src.Over != 0:
		return fmt.Sprintf("over its budget (%s)", src.Over)
	case r == wire.ReasonBudget:
		return "over its budget"
	case r == wire.ReasonPolicy:
		return "not granted by the claim policy file"
	case r == wire.ReasonTooLarge:
		return "too large"
	}
	return string(r)
}

// unknownTexts names the clusters for which the answer is not known: those that are not known as of now, and those
// with refused entries.
func unknownTexts(noun string, unconfirmed, refusing []string) string {
	var texts []string
	if len(unconfirmed) > 0 {
		texts = append(texts, fmt.Sprintf("the %s of %s are not known as of now", noun, ordered(unconfirmed)))
	}
	if len(refusing) > 0 {
		texts = append(texts, fmt.Sprintf("not all %s of %s are known: some are refused", noun, ordered(refusing)))
	}
	return strings.Join(texts, ", and ")
}
