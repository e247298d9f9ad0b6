package environment

import "syscall"

// endWithUs has the kernel end a process with the thread that has started it, and keeps the
// Ctrl-C of a terminal from it: whoever has started it asks it to end.
func endWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
