//go:build !linux

package helmchart

// confine does nothing where the kernel does not count memory as Linux does: the time is
// bounded by who waits for the answer.
func (Limits) confine() error { return nil }
