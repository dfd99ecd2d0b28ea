// Package guard turns a panic into an error, so that a failure with one cluster ends the work for that cluster and
// not the process.
//
// It is the last of several defences: answers are checked before they are used, and the cost of values is bounded. A
// panic that remains is a bug of this program.
//
// The known and the applied entries may differ after a panic, so everything is listed and applied again.
package guard

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Functions of this module, and of this package.
const (
	ours  = "github.com/mesh-agent/mesh-agent/"
	guard = ours + "internal/base/guard."
)

const maxStack = 16 << 10 // bytes of a panic's stack that are kept

// Panic is an error that was a panic.
type Panic struct {
	Value any    // what the code panicked with
	Stack string // of the goroutine that panicked
	Place string // "file:line": the innermost of ours, or of any where none is; the same for each panic there
}

// Error says what the panic was, without the stack.
func (p *Panic) Error() string {
	return fmt.Sprintf("internal error: %.512s", fmt.Sprint(p.Value))
}

// Run calls f and returns its error, or a [*Panic] when f panics.
func Run(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			err = &Panic{Value: v, Stack: string(stack[:min(len(stack), maxStack)]), Place: place()}
		}
	}()
	return f()
}

// Func returns a function that calls f as [Run] does, for an errgroup.
func Func(f func() error) func() error {
	return func() error { return Run(f) }
}

// place finds where the goroutine has panicked that recovers now. An inlined function
// has several names, so the file says where it is.
func place() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	first := ""
	for {
		f, more := frames.Next()
		switch at := fmt.Sprintf("%s:%d", f.File, f.Line); {
		case strings.HasPrefix(f.Function, guard+"Run"), strings.HasPrefix(f.Function, guard+"place"), strings.HasPrefix(f.Function, "runtime."):
		case strings.HasPrefix(f.Function, ours):
			return at
		case first == "":
			first = at
		}
		if !more {
			return first
		}
	}
}
