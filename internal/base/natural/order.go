package natural

import (
	"iter"
	"slices"
)

// mostOrdered is how long a list may be to be put in order: of longer ones, no item waits for the last.
const mostOrdered = 10_000

// Order gives the items the natural order of their names. Those of a long list come as they are.
func Order[T any](items iter.Seq2[T, error], name func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var held []T // until all are there, or too many
		give := func(order []int) bool {
			all := held
			held = nil
			for _, at := range order {
				if !yield(all[at], nil) {
					return false
				}
			}
			return true
		}
		long := false
		for item, err := range items {
			if err == nil && !long && len(held) < mostOrdered {
				held = append(held, item)
				continue
			}
			long = long || err == nil
			if !give(places(held, name, !long)) || !yield(item, err) {
				return
			}
		}
		give(places(held, name, true))
	}
}

// places are those of the items, in the natural order of their names where that is wanted.
func places[T any](items []T, name func(T) string, sorted bool) []int {
	names, all := make([]string, len(items)), make([]int, len(items))
	for i, item := range items {
		names[i], all[i] = name(item), i
	}
	if sorted {
		sortByName(all, names)
	}
	return all
}

// sortByName is apart: it is the same for items of all types.
func sortByName(all []int, names []string) {
	slices.SortStableFunc(all, func(a, b int) int { return Compare(names[a], names[b]) })
}
