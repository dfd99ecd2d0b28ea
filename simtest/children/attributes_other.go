//go:build unix && !linux

package children

import "syscall"

// Attributes put the program into a process group of its own.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
