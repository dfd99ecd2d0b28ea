package printer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// Path says which part of an object is meant, as kubectl's option -o jsonpath does: {.items[*].name}. A path alone may be
// without braces.
type Path struct {
	given string
	of    *jsonpath.JSONPath // skips missing fields
	all   *jsonpath.JSONPath // fails at missing fields
}

// ErrNoField is the error of a list that is to be in the order of a field that none of its items has.
var ErrNoField = errors.New("no item has this field")

// ParsePath reads a path. As in kubectl, the braces and the first dot may be left out.
func ParsePath(text string) (*Path, error) {
	if !strings.Contains(text, "{") {
		if text != "" && unicode.IsLetter(rune(text[0])) {
			text = "." + text
		}
		text = "{" + text + "}"
	}
	p := &Path{text, jsonpath.New("path").AllowMissingKeys(true), jsonpath.New("path")}
	err := errors.Join(p.of.Parse(text), p.all.Parse(text))
	if err == nil && !strings.Contains(text, "range") { // which needs its items
		_, err = p.of.FindResults(map[string]any{}) // some mistakes are not found before
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no path such as {.items[*].name}: %w", text, err)
	}
	return p, nil
}

// text is the part of a value, on a line of its own.
func (p *Path) text(v any) ([]byte, error) {
	tree, err := treeOf(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := p.of.Execute(&out, tree); err != nil {
		return nil, err
	}
	return append(bytes.TrimSuffix(out.Bytes(), []byte("\n")), '\n'), nil
}

// first is the first part of a value that is meant; nil when there is none. There may be a field without a value.
func (p *Path) first(v any) (part any, field bool, fields []string, err error) {
	tree, err := treeOf(v)
	if err != nil {
		return nil, false, nil, err
	}
	_, missing := p.all.FindResults(tree)
	if top, is := tree.(map[string]any); is {
		fields = slices.Sorted(maps.Keys(top))
	}
	found, err := p.of.FindResults(tree)
	if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].IsValid() {
		return nil, missing == nil, fields, err
	}
	return found[0][0].Interface(), true, fields, nil
}

// treeOf is a value with the names of its JSON. Texts are clean, so that none can become several lines.
func treeOf(v any) (tree any, err error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = utiljson.Unmarshal(text, &tree)
	}
	return cleanTree(tree), err
}

func cleanTree(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case []any:
		for i := range v {
			v[i] = cleanTree(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, value := range v {
			clean[Clean(name)] = cleanTree(value)
		}
		return clean
	}
	return v
}

// Sorted returns all items in the order of a part of them: first the items without this part, then numbers by their
// size, and all else as text. The error is [ErrNoField] when no item has it.
func Sorted[T any](items iter.Seq2[T, error], by *Path) ([]T, error) {
	type keyed struct {
		key  any
		item T
	}
	var all []keyed
	var fields []string
	some := false
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		key, has, those, err := by.first(item)
		if err != nil {
			return nil, err
		}
		some, fields = some || has, those
		all = append(all, keyed{key, item})
	}
	if !some && len(all) > 0 {
		return nil, fmt.Errorf("%s: %w: it has .%s", by.given, ErrNoField, strings.Join(fields, ", ."))
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return compareKeys(a.key, b.key) })
	sorted := make([]T, 0, len(all))
	for _, k := range all {
		sorted = append(sorted, k.item)
	}
	return sorted, nil
}

func compareKeys(a, b any) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	x, isNumber := number(a)
	y, isToo := number(b)
	if isNumber && isToo {
		return cmp.Compare(x, y)
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// whole is a list as the one object that the API answers with.
func whole[T any](l Listing[T]) (n int, object any, err error) {
	items := []T{}
	for item, err := range l.Items {
		if err != nil {
			return 0, nil, err
		}
		items = append(items, item)
	}
	return len(items), map[string]any{"revision": l.Revision, "items": items, "next": l.Next()}, nil
}
