package natural

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	broken := errors.New("the agent is gone")
	var long []string
	for i := range mostOrdered + 1 {
		long = append(long, strings.Repeat("x", 3-i%3))
	}
	for name, test := range map[string]struct {
		items, want []string
		err         error
	}{
		"none":           {},
		"one":            {items: []string{"a"}, want: []string{"a"}},
		"several":        {items: []string{"c10", "c2", "b"}, want: []string{"b", "c2", "c10"}},
		"with an error":  {items: []string{"c10", "c2"}, want: []string{"c2", "c10"}, err: broken},
		"only an error":  {err: broken},
		"too many of it": {items: long, want: long},
	} {
		source := func(yield func(string, error) bool) {
			for _, item := range test.items {
				if !yield(item, nil) {
					return
				}
			}
			if test.err != nil {
				yield("", test.err)
			}
		}
		var got []string
		var end error
		for item, err := range Order(source, func(s string) string { return s }) {
			if end = err; err == nil {
				got = append(got, item)
			}
		}
		if !slices.Equal(got, test.want) || !errors.Is(end, test.err) {
			t.Errorf("%s: %d items, %v", name, len(got), end)
		}
		for range Order(source, func(s string) string { return s }) {
			break // a list may be left early
		}
	}
}
