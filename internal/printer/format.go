package printer

import (
	"fmt"
	"slices"
	"strings"
)

// Format is a form of output. It is the value of a flag, which
// refuses every format that is not allowed.
type Format struct {
	name    string
	allowed []string
}

// The names of formats.
const (
	Text  = "text"
	Plain = "table"
	Wide  = "wide"
	JSON  = "json"
	YAML  = "yaml"
	Name  = "name"
)

// NewFormat returns a format that may be any of those allowed and is the first.
func NewFormat(allowed ...string) *Format { return &Format{name: allowed[0], allowed: allowed} }

// String returns the format's name.
func (f *Format) String() string { return f.name }

// Type is what help calls the value.
func (f *Format) Type() string { return strings.Join(f.allowed, "|") }

// Set chooses the format of that name.
func (f *Format) Set(name string) error {
	if !slices.Contains(f.allowed, name) {
		return fmt.Errorf("must be one of %s", strings.Join(f.allowed, ", "))
	}
	f.name = name
	return nil
}

// Structured tells whether the format is for programs: JSON or YAML.
func (f *Format) Structured() bool { return f.name == JSON || f.name == YAML }
