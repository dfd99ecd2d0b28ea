package printer

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Natural compares names as people order them: cluster2 comes before cluster10.
func Natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		i, j := digits(x), digits(y)
		if i > 0 && j > 0 {
			m, n := strings.TrimLeft(x[:i], "0"), strings.TrimLeft(y[:j], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
				return c
			}
			x, y = x[i:], y[j:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits is how many of them a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// mostOrdered is how long a list may be to be put in order: of longer ones, no item waits for the last.
const mostOrdered = 10_000

// NaturalOrder gives the items the natural order of their names. Those of a long list come as they are.
func NaturalOrder[T any](items iter.Seq2[T, error], name func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var first []T
		var names []string
		give := func(order []int) bool {
			for _, at := range order {
				if !yield(first[at], nil) {
					return false
				}
			}
			first = nil
			return true
		}
		for item, err := range items {
			if err == nil && names != nil && len(names) == mostOrdered {
				if len(first) > 0 && !give(places(len(first))) {
					return
				}
			} else if err == nil {
				first, names = append(first, item), append(names, name(item))
				continue
			} else if !give(inOrder(names[:len(first)])) {
				return
			}
			if !yield(item, err) {
				return
			}
		}
		give(inOrder(names[:len(first)]))
	}
}

// places are the numbers below n.
func places(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// inOrder are the places of the names in their natural order.
func inOrder(names []string) []int {
	all := places(len(names))
	slices.SortStableFunc(all, func(a, b int) int { return Natural(names[a], names[b]) })
	return all
}
