package main

import (
	"testing"

	"github.com/prometheus/procfs"
)

// The process has less of its binary in memory, and goes on.
//
//nolint:paralleltest // it looks at the memory of the process
func TestPagesOfTheBinaryAreGivenBack(t *testing.T) {
	before := residentFileBytes(t)
	if err := pageOut(); err != nil {
		t.Fatal(err)
	}
	if after := residentFileBytes(t); after >= before {
		t.Errorf("%d bytes of files are in memory, which were %d before", after, before)
	}
}

func residentFileBytes(t *testing.T) uint64 {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	status, err := self.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	return status.RssFile
}
