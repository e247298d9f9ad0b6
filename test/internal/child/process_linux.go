package child

import "syscall"

// attributes asks the kernel to kill the process together with its parent, and
// keeps the Ctrl-C of a terminal from reaching it, because stopping in order is
// the work of the parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
