package waittest

import (
	"bytes"
	"strings"
	"sync"
)

// Output takes what others write, such as a log, while a test reads it.
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

// String is everything so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Count is how often a part is in it so far.
func (o *Output) Count(part string) int { return strings.Count(o.String(), part) }
