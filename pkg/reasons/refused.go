package reasons

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// refusedOf says how many entries of some resources of a cluster are refused, and
// why; empty for none. A copy that is known as of now lacks them, so that what it
// does not have the cluster may have all the same.
func (v *View) refusedOf(cluster string, of ...wire.Resource) string {
	return v.refusedBut(nil, cluster, of...)
}

// refusedBut is refusedOf without what is refused for one of these reasons.
func (v *View) refusedBut(leaveOut []wire.Reason, cluster string, of ...wire.Resource) string {
	var texts []string
	for _, r := range of {
		if text := refusedText(v.Clusters[cluster].Sources[r], leaveOut...); text != "" {
			n, why, _ := strings.Cut(text, " ")
			texts = append(texts, fmt.Sprintf("%s of its %s are refused: %s", n, r.Describe().Many, why))
		}
	}
	return strings.Join(texts, "; ")
}

// refusedText is how many entries of a resource are refused, and why, the most
// frequent reason first.
func refusedText(src remotecluster.SourceStatus, leaveOut ...wire.Reason) string {
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

// refusedFor is a reason in a sentence.
func refusedFor(r wire.Reason, src remotecluster.SourceStatus) string {
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

// unknownTexts says of which clusters what is asked for is not known: those that
// are not known as of now, and those of which entries are refused.
func unknownTexts(noun string, unconfirmed, refusing []string) string {
	var texts []string
	if len(unconfirmed) > 0 {
		texts = append(texts, fmt.Sprintf("the %s of %s are not known as of now", noun, list(unconfirmed)))
	}
	if len(refusing) > 0 {
		texts = append(texts, fmt.Sprintf("not all %s of %s are known: some are refused", noun, list(refusing)))
	}
	return strings.Join(texts, ", and ")
}
