package top

import (
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
)

// Keys without a printable character.
const (
	escape    = 0x1b
	backspace = 0x7f
)

// mostTyped is the maximum length of a filter.
const mostTyped = 64

// orders returns the sort orders, in the order in which the key selects them.
func orders() []string { return []string{byRate, byEntries, byLag, byAge, byCluster} }

// press handles a key, and reports whether it ends the command.
func (l *look) press(key byte) (quit bool) {
	l.again = true
	if l.typing {
		l.typeKey(key)
		return false
	}
	switch key {
	case 'q', 'Q':
		return true
	case 's', 'S':
		all := orders()
		_ = l.order.Set(all[(slices.Index(all, l.order.String())+1)%len(all)]) // each of them is valid
	case '/', 'f', 'F':
		l.typing, l.filter = true, ""
	case escape:
		l.filter = ""
	}
	return false
}

func (l *look) typeKey(key byte) {
	switch {
	case key == '\r' || key == '\n':
		l.typing = false
	case key == escape:
		l.typing, l.filter = false, ""
	case key == backspace || key == '\b':
		l.filter = l.filter[:max(len(l.filter)-1, 0)]
	case key > ' ' && key < backspace && len(l.filter) < mostTyped:
		l.filter += string(rune(key))
	}
}

// arranged returns the last sample with the rows that pass the filter, sorted.
func (l *look) arranged() *sample {
	s := *l.sample
	s.Rows = sorted(slices.DeleteFunc(slices.Clone(s.Rows), func(r row) bool {
		return !strings.Contains(r.Cluster, l.filter) && !strings.Contains(r.Resource, l.filter)
	}), l.order.String())
	s.filtered = len(l.sample.Rows) > 0 && len(s.Rows) == 0
	if l.keys {
		s.keys = l.help()
	}
	return &s
}

// help returns the meaning of the keys.
func (l *look) help() string {
	filter := "none"
	switch {
	case l.typing:
		filter = l.filter + "_ (Enter: done, Esc: none)"
	case l.filter != "":
		filter = l.filter
	}
	return "s sort: " + l.order.String() + "   / filter: " + printer.Clean(filter) + "   q quit"
}
