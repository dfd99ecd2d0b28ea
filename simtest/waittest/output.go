package waittest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Output collects the writes of other goroutines, for example a log, while a test reads them.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the whole output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Count returns how often a part occurs in the output so far.
func (o *Output) Count(part string) int { return strings.Count(o.String(), part) }

// Lines returns the lines so far that contain all the parts.
func (o *Output) Lines(parts ...string) []string {
	return slices.DeleteFunc(slices.Collect(strings.Lines(o.String())), func(line string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}
