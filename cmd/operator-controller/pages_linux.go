package main

import (
	"fmt"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// pageOut asks the kernel to drop what it has of the file of this process in memory. It
// drops nothing that has been changed since it was read.
func pageOut() error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the binary: %w", err)
	}
	self, err := procfs.Self()
	if err != nil {
		return fmt.Errorf("finding the process: %w", err)
	}
	mappings, err := self.ProcMaps()
	if err != nil {
		return fmt.Errorf("reading what is mapped: %w", err)
	}
	for _, m := range mappings {
		if m.Pathname != binary || m.Perms.Write {
			continue
		}
		_, _, failed := unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_PAGEOUT)
		if failed != 0 {
			return fmt.Errorf("giving back pages: %w", failed)
		}
	}
	return nil
}
