// Package mistakes makes errors for invalid settings of an allocator or a backend.
package mistakes

import "fmt"

// If returns an error with this message if wrong is true; else nil.
func If(wrong bool, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return fmt.Errorf(format, args...)
}
