// Package selector chooses objects by their labels, as kubectl does.
package selector

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Selector chooses objects by their labels, as kubectl's does: requirements
// with commas between, all of which must hold. Kubernetes' own parser refuses
// the keys of identities, which have a source: "k8s:app".
type Selector []requirement

// requirement is one condition on the label with that key.
type requirement struct {
	key    string
	values []string // nil: that it is there
	negate bool
}

// Parse reads "key", "!key", "key=value", "key==value", "key!=value",
// "key in (a,b)" and "key notin (a,b)".
func Parse(text string) (Selector, error) {
	var s Selector
	for _, part := range splitRequirements(text) {
		r, err := parseRequirement(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		s = append(s, r)
	}
	return s, nil
}

func splitRequirements(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

func parseRequirement(text string) (requirement, error) {
	if key, set, found := strings.Cut(text, "("); found {
		return parseSet(strings.Fields(key), set)
	}
	key, value, negate, valued := text, "", false, true
	switch {
	case strings.Contains(text, "!="):
		key, value, _ = strings.Cut(text, "!=")
		negate = true
	case strings.Contains(text, "="):
		key, value, _ = strings.Cut(text, "=")
		value = strings.TrimPrefix(value, "=")
	default:
		key, negate = strings.CutPrefix(text, "!")
		valued = false
	}
	key = strings.TrimSpace(key)
	if key == "" || strings.ContainsAny(key, "!()<> \t") {
		return requirement{}, fmt.Errorf("%q is no requirement: want key, !key, key=value, key!=value, key in (a,b) or key notin (a,b)", text)
	}
	r := requirement{key: key, negate: negate}
	if valued {
		r.values = []string{strings.TrimSpace(value)}
	}
	return r, nil
}

// parseSet reads the rest of "key in (a,b)".
func parseSet(before []string, set string) (requirement, error) {
	set, closed := strings.CutSuffix(strings.TrimSpace(set), ")")
	if len(before) != 2 || before[1] != "in" && before[1] != "notin" || !closed || strings.ContainsAny(set, "()") {
		return requirement{}, fmt.Errorf("a set is written as key in (a,b) or key notin (a,b)")
	}
	r := requirement{key: before[0], negate: before[1] == "notin"}
	for value := range strings.SplitSeq(set, ",") {
		r.values = append(r.values, strings.TrimSpace(value))
	}
	return r, nil
}

// Matches reports whether the labels fulfil every requirement. As in Kubernetes, "not this value" also holds if the
// label is missing.
func (s Selector) Matches(labels iter.Seq2[string, string]) bool {
	for _, r := range s {
		if r.holds(labels) == r.negate {
			return false
		}
	}
	return true
}

func (r requirement) holds(labels iter.Seq2[string, string]) bool {
	for key, value := range labels {
		if r.isKey(key) && (r.values == nil || slices.Contains(r.values, value)) {
			return true
		}
	}
	return false
}

// isKey reports whether the key is the one that is meant: a label of an identity
// may be named with its source or without.
func (r requirement) isKey(key string) bool {
	if key == r.key {
		return true
	}
	_, bare, sourced := strings.Cut(key, ":")
	return sourced && bare == r.key
}
