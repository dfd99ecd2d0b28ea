package mcs

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Allowed are keys of labels or annotations that a remote export may put onto objects of the own cluster, where
// controllers act on them. None are allowed by default. A key that ends in "/*" allows all keys of its domain.
type Allowed []string

// ParseAllowed reads keys with commas between them.
func ParseAllowed(text string) (all Allowed, err error) {
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key == "" {
			continue
		}
		if problems := validation.IsQualifiedName(strings.ToLower(strings.TrimSuffix(key, "*") + "x")); len(problems) > 0 || strings.HasSuffix(key, "*") && !strings.HasSuffix(key, "/*") {
			return nil, fmt.Errorf("%q is no key: want one such as team or example.com/team, or all of a domain as in example.com/*", key)
		}
		all = append(all, key)
	}
	return all, nil
}

// has reports whether a key is allowed.
func (a Allowed) has(key string) bool {
	return slices.ContainsFunc(a, func(allowed string) bool {
		domain, all := strings.CutSuffix(allowed, "*")
		return key == allowed || all && strings.HasPrefix(key, domain)
	})
}

// of are those of the texts that are allowed; nil for none.
func (a Allowed) of(texts map[string]string) map[string]string {
	return kept(texts, func(key, _ string) bool { return a.has(key) })
}
