//go:build !linux

package child

import "syscall"

// attributes leaves the process in the group of its parent: without a parent
// death signal the group is what reaches it when the parent is gone.
func attributes() *syscall.SysProcAttr {
	return nil
}
