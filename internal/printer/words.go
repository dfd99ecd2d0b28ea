package printer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Present drops the fields that have nothing to say.
func Present(fields ...Field) []Field {
	return slices.DeleteFunc(fields, func(f Field) bool { return strings.Join(f.Texts, "") == "" })
}

// OrText is the texts, or this one when there are none.
func OrText(texts []string, text string) []string {
	if len(texts) == 0 {
		return []string{text}
	}
	return texts
}

// SortedLabels lists labels as KEY=VALUE, by key.
func SortedLabels(labels map[string]string) []string {
	texts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}

// Labels lists labels on one line, LabelLines each on its own.
func Labels(m map[string]string) string { return strings.Join(LabelLines(m), ",") }

// LabelLines lists labels, by key; those without a value have no equals sign.
func LabelLines(m map[string]string) []string {
	texts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if m[key] == "" {
			texts = append(texts, key)
		} else {
			texts = append(texts, key+"="+m[key])
		}
	}
	return texts
}

// Ago is how long ago a moment was; empty for none.
func Ago(t *time.Time) string {
	if t == nil {
		return ""
	}
	return Duration(time.Since(*t)) + " ago"
}

// YesNo is a truth in a word.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Number is the number, nothing for 0, which means none.
func Number(id uint32) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(id), 10)
}

// CleanLines cleans each line of a text that others may have written a part of.
func CleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Clean(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// OneLine puts a text of several lines on one.
func OneLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// Some joins the first texts and counts the rest.
func Some(texts []string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}

// Moment writes a time with its distance from now; nothing for none.
func Moment(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), Duration(now.Sub(*t)))
}

// Seconds writes a number of seconds as a span of time.
func Seconds(n float64) string { return Duration(time.Duration(n * float64(time.Second))) }

// Count writes a number with its noun.
func Count(n int, noun string) string { return Counted(n, noun, noun+"s") }

// Counted writes a number with its noun in the singular or the plural.
func Counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// WellColor is the color of what is well, or is not.
func WellColor(well bool) Color {
	if well {
		return Green
	}
	return Red
}
