package sim

import "syscall"

// ownProcessGroup also ends the program when the simulator is killed.
func ownProcessGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
