package image

import (
	"fmt"
	"os"
	"time"
)

// pace is how fast the blobs of one image come, by windows of the time that was
// waited for them. What is done with them meanwhile takes its own time, which does
// not count.
type pace struct {
	window time.Duration
	bytes  int64 // to come in each window

	waited time.Duration
	came   int64
}

// wait begins a wait. What it returns ends it, with the bytes that came.
func (p *pace) wait() (end func(came int) error) {
	began := time.Now()                                                   //nolint:forbidigo // as for the timeouts of a network
	return func(came int) error { return p.add(came, time.Since(began)) } //nolint:forbidigo // likewise
}

// add takes in that so many bytes came after a wait. The error says that the registry
// is too slow.
func (p *pace) add(came int, waited time.Duration) error {
	p.came += int64(came)
	p.waited += waited
	if p.waited < p.window {
		return nil
	}
	enough := p.came >= p.bytes
	p.came, p.waited = 0, 0
	if enough {
		return nil
	}
	return fmt.Errorf("the registry is too slow: less than %d bytes came within %s of waiting: %w", p.bytes, p.window, os.ErrDeadlineExceeded)
}
