// Package mistakes says what is wrong with the settings of an allocator or a backend.
package mistakes

import "fmt"

// If returns an error that says what is wrong, if something is; else nil.
func If(wrong bool, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return fmt.Errorf(format, args...)
}
