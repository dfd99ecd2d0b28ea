// Package exit holds the exit codes of the program, and the errors that choose one.
package exit

import (
	"errors"
	"fmt"
)

// Verdict ends a command whose answer was printed, unless printing failed.
func Verdict(err error, faulty, unwell bool) error {
	switch {
	case err != nil:
		return err
	case faulty:
		return ErrFaulty
	case unwell:
		return ErrUnwell
	}
	return nil
}

// The exit codes of every command (interface.md).
const (
	OK     = 0
	Unwell = 1 // not well, not found, or failed
	Usage  = 2 // used wrongly, or the agent cannot be reached
)

// UsageError is a mistake of the user or program that called the command.
type UsageError struct{ Err error }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{Err: fmt.Errorf(format, args...)} }

// ErrUnwell ends a command whose answer, which was printed, is not a good one.
var ErrUnwell = errors.New("not well")

// ErrFaulty ends a command that has printed a result that can never work.
var ErrFaulty = errors.New("faulty")

// ReportedError ends a command whose error was reported already.
type ReportedError struct{ Err error }

// Error implements error.
func (e ReportedError) Error() string { return e.Err.Error() }

// Unwrap returns the error that was reported.
func (e ReportedError) Unwrap() error { return e.Err }
