package helmchart

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// confine has the kernel end this process when it takes more than it may, beside the memory that
// it has begun with.
func (l Limits) confine() error {
	begun, err := dataBytes()
	if err != nil {
		return fmt.Errorf("bounding the memory: %w", err)
	}
	memory, seconds := begun+uint64(max(l.Memory, 0))*memoryPerByte, uint64(max(l.Processor/time.Second, 0))
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return fmt.Errorf("bounding the memory: %w", err)
	}
	// The kernel says when the time is up, and ends a process that does not get to hear it.
	outOfTime := make(chan os.Signal, 1)
	signal.Notify(outOfTime, syscall.SIGXCPU)
	go func() {
		<-outOfTime
		os.Exit(exitOutOfTime)
	}()
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds + secondsToHear}); err != nil {
		return fmt.Errorf("bounding the time: %w", err)
	}
	// When memory is short, the kernel rather ends this process than the one that waits for it.
	// A process is bounded as well where it may not say so.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}

// dataBytes is the memory of this process that RLIMIT_DATA is about, with the stack.
func dataBytes() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	const data = 5 // in pages, see proc_pid_statm(5)
	fields := bytes.Fields(text)
	if len(fields) <= data {
		return 0, fmt.Errorf("/proc/self/statm has %d fields", len(fields))
	}
	pages, err := strconv.ParseUint(string(fields[data]), 10, 64)
	return pages * uint64(os.Getpagesize()), err //nolint:gosec // a page has a size
}

// secondsToHear are on a processor, most of them for whatever does not let the runtime go on.
const secondsToHear = 5
