//go:build !linux

package environment

import "syscall"

// endWithUs is for Linux only.
func endWithUs() *syscall.SysProcAttr { return nil }
