package main

import (
	"slices"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// column is a column of the matrix.
type column struct {
	release string
	path    interop.Path
}

// columns are those that there must be: the values of every release, and every path
// of the newest one.
func (r *report) columns() []column {
	var all []column
	for _, release := range r.Releases {
		all = append(all, column{release, interop.Values})
	}
	if slices.Contains(r.Releases, interop.Newest) {
		for _, p := range []interop.Path{interop.Direct, interop.ByCilium, interop.ByUs} {
			all = append(all, column{interop.Newest, p})
		}
	}
	return all
}

// cannot says why a release cannot have a kind; it is empty where it can.
func cannot(release string, kind model.Kind) string {
	switch {
	case kind == model.EndpointSlices && before(release, "1.20"):
		return "endpoint slices exist since 1.20"
	case kind == model.ServiceExports && before(release, "1.17"):
		return "service exports exist since 1.17"
	}
	return ""
}

// before compares releases of the same length of numbers: 1.16.2 is before 1.17.
func before(release, minor string) bool { return release[:len(minor)] < minor }
