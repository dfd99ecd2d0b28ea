package publish

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// LabelFilter says which labels count for a pod's identity. The zero value, and
// nil, include everything.
type LabelFilter struct {
	rules []labelRule
	// inclusive: what no rule is about is left out.
	inclusive bool
}

// labelRule is about the labels whose keys begin with a pattern.
type labelRule struct {
	source  string // empty for all
	pattern *regexp.Regexp
	exclude bool
}

// defaultLabels are the rules that always hold, as Cilium documents them: what
// differs from pod to pod of one workload makes no identity.
const defaultLabels = `io\.kubernetes\.pod\.namespace io\.cilium\.k8s\.namespace\.labels app\.kubernetes\.io ` +
	`!io\.kubernetes !kubernetes\.io !.*beta\.kubernetes\.io !k8s\.io ` +
	`!pod-template-generation !pod-template-hash !controller-revision-hash ` +
	`!statefulset\.kubernetes\.io/pod-name !batch\.kubernetes\.io/ !apps\.kubernetes\.io/pod-index ` +
	`!annotation.* !etcd_node`

// NewLabelFilter reads rules, separated by spaces, which are added to the usual
// ones: each is a pattern (a regular expression) that the beginning of a key must
// match, with a "!" in front if such labels do not count, and with a source in
// front if it is only about labels of that: "!k8s:name", "k8s:!name". The rule
// that matches the longest part of a key decides, of two equal ones the one that
// leaves out. When a given rule is without "!", what no rule is about is left out.
func NewLabelFilter(text string) (*LabelFilter, error) {
	f := new(LabelFilter)
	for _, rules := range []string{defaultLabels, text} {
		f.inclusive = false // the usual rules leave out nothing that they are not about
		for rule := range strings.FieldsSeq(rules) {
			r, err := newLabelRule(rule)
			if err != nil {
				return nil, fmt.Errorf("the rule %q for labels: %w", rule, err)
			}
			f.rules = append(f.rules, r)
			f.inclusive = f.inclusive || !r.exclude
		}
	}
	return f, nil
}

func newLabelRule(text string) (r labelRule, err error) {
	text, r.exclude = strings.CutPrefix(text, "!")
	if source, rest, found := strings.Cut(text, ":"); found {
		r.source, text = source, rest
		if rest, not := strings.CutPrefix(text, "!"); not {
			r.exclude, text = true, rest
		}
	}
	if text == "" {
		return r, fmt.Errorf("it has no pattern")
	}
	r.pattern, err = regexp.Compile("^(?:" + text + ")")
	return r, err
}

// Includes reports whether the label counts.
func (f *LabelFilter) Includes(l wire.Label) bool {
	if f == nil {
		return true
	}
	included, longest := !f.inclusive, -1
	for _, r := range f.rules {
		if r.source != "" && r.source != l.Source {
			continue
		}
		match := r.pattern.FindStringIndex(l.Key)
		if match == nil || match[1] < longest || match[1] == longest && !r.exclude {
			continue
		}
		included, longest = !r.exclude, match[1]
	}
	return included
}
