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
	if err := l.boundMemory(); err != nil {
		return fmt.Errorf("bounding the memory: %w", err)
	}
	seconds := uint64(max(l.Processor/time.Second, 0))
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

// boundMemory bounds the data and the address space. The kernel does not count data that the runtime
// maps over addresses that it has reserved before: a single large allocation would exceed the first
// bound alone.
func (l Limits) boundMemory() error {
	space, data, err := memoryBytes()
	if err != nil {
		return err
	}
	more := uint64(max(l.Memory, 0)) * memoryPerByte
	for resource, limit := range map[int]uint64{syscall.RLIMIT_DATA: data + more, syscall.RLIMIT_AS: space + more + arena} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	return nil
}

// arena is the size of the pieces in which the runtime reserves addresses.
const arena = 64 << 20

// memoryBytes returns the address space of this process, and the part that RLIMIT_DATA is about, with
// the stack.
func memoryBytes() (space, data uint64, err error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, err
	}
	const inData = 5 // in pages, see proc_pid_statm(5)
	fields := bytes.Fields(text)
	if len(fields) <= inData {
		return 0, 0, fmt.Errorf("/proc/self/statm has %d fields", len(fields))
	}
	spacePages, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil {
		return 0, 0, err
	}
	dataPages, err := strconv.ParseUint(string(fields[inData]), 10, 64)
	page := uint64(os.Getpagesize()) //nolint:gosec // a page has a size
	return spacePages * page, dataPages * page, err
}

// secondsToHear are on a processor, most of them for whatever does not let the runtime go on.
const secondsToHear = 5
