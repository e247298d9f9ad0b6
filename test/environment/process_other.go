//go:build !linux

package environment

import (
	"os"
	"syscall"
)

// endWithUs is for Linux only.
func endWithUs() *syscall.SysProcAttr { return nil }

// mostMemory is for Linux only.
func mostMemory(*os.ProcessState) int64 { return 0 }
