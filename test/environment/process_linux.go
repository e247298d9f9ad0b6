package environment

import "syscall"

// endWithUs has the kernel end a process with the thread that has started it.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
