package main

import "testing"

// TestOwnMemory leaves room for a chart that is rendered, unless that is most of what there is.
func TestOwnMemory(t *testing.T) {
	t.Parallel()
	for container, want := range map[uint64]uint64{0: 0, 256 << 20: 128 << 20, 1000 << 20: 594 << 20, 4000 << 20: 3144 << 20} {
		if got := ownMemory(container); got != want {
			t.Errorf("of %d MiB it takes %d bytes, want %d", container>>20, got, want)
		}
	}
}
