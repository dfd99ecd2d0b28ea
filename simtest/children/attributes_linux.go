package children

import "syscall"

// Attributes also end the program when its parent is killed. The signal is sent when the thread that started it ends.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
