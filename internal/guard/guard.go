// Package guard turns a panic into an error, so that what goes wrong with one
// cluster ends with that cluster and not with the process.
//
// It is the last of several defences: answers are checked before they are believed,
// and what values cost is bounded. What still panics is a mistake in this program.
package guard

import (
	"fmt"
	"runtime/debug"
)

// maxStack bounds the stack that is kept of a panic.
const maxStack = 16 << 10

// Panic is an error that was a panic.
type Panic struct {
	Value any    // what the code panicked with
	Stack string // of the goroutine that panicked
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
			err = &Panic{Value: v, Stack: string(stack[:min(len(stack), maxStack)])}
		}
	}()
	return f()
}

// Func returns a function that calls f as [Run] does, for an errgroup.
func Func(f func() error) func() error {
	return func() error { return Run(f) }
}
