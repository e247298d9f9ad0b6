package environment

import (
	"os"
	"syscall"
)

// endWithUs has the kernel end a process with the thread that has started it.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// mostMemory is how much memory a process that has ended had at its most, in bytes; zero if
// that is not known.
func mostMemory(ended *os.ProcessState) int64 {
	usage, known := ended.SysUsage().(*syscall.Rusage)
	if !known {
		return 0
	}
	return usage.Maxrss << 10
}
