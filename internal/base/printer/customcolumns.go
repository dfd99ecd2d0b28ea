package printer

import (
	"errors"
	"fmt"
	"strings"
)

// CustomColumns is given with its columns, as with kubectl: custom-columns=NAME:.name,ID:.id.
const CustomColumns = "custom-columns"

// customColumn is a part of each object, below a title.
type customColumn struct {
	title string
	part  *Path
}

// parseColumns reads the titles and paths of columns.
func parseColumns(text string) ([]customColumn, error) {
	var columns []customColumn
	for one := range strings.SplitSeq(text, ",") {
		title, path, both := strings.Cut(one, ":")
		if !both || title == "" || path == "" {
			return nil, errors.New("give titles and paths: custom-columns=NAME:.name,ID:.id")
		}
		part, err := ParsePath(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		columns = append(columns, customColumn{title, part})
	}
	return columns, nil
}

// TableFor is a table of the columns that a format has of its own, and the other one when it has none.
func TableFor[T any](f *Format, other Table[T]) Table[T] {
	if f.columns == nil {
		return other
	}
	table := make(Table[T], len(f.columns))
	for i, c := range f.columns {
		table[i] = Column[T]{Title: c.title, Text: func(v T) string {
			text, err := c.part.text(v)
			if err != nil {
				return "" // it has no such part
			}
			return strings.TrimSuffix(string(text), "\n")
		}}
	}
	return table
}
