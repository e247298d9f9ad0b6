package environment

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to stop on its own.
const stopGrace = 30 * time.Second

// Process is a program that runs beside the cluster.
type Process struct {
	name    string
	command *exec.Cmd
	logFile string
	exited  chan struct{}

	once sync.Once
}

// StartProcess starts a command. What it prints goes to logFile, at the end; errors call
// it by its name. On Linux it ends with this process, however that ends.
func StartProcess(name, logFile string, command *exec.Cmd) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	command.Stdout, command.Stderr = log, log
	process := &Process{name: name, command: command, logFile: logFile, exited: make(chan struct{})}
	if err := process.start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return process, nil
}

// start has a thread to itself: the kernel ends the process with it. A controller waits for
// a cluster that has gone, and would outlive tests that were killed.
func (p *Process) start() error {
	p.command.SysProcAttr = endWithUs()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait()
			close(p.exited)
		}
	}()
	return <-started
}

// PID is the id of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Running is an error if the process has ended.
func (p *Process) Running() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s ended: %s (log: %s)", p.name, p.command.ProcessState, p.logFile)
	default:
		return nil
	}
}

// Kill ends the process at once, as a crash does.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL) }

// Stop asks the process to end, and reports when it did not do so in order.
func (p *Process) Stop() error {
	if err := p.end(syscall.SIGTERM); err != nil {
		return err
	}
	if code := p.command.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with status %d (log: %s)", p.name, code, p.logFile)
	}
	return nil
}

func (p *Process) end(signal syscall.Signal) error {
	var err error
	p.once.Do(func() {
		_ = p.command.Process.Signal(signal)
		select {
		case <-p.exited:
		case <-time.After(stopGrace):
			err = fmt.Errorf("%s did not stop within %s, what it does is in its log (%s)", p.name, stopGrace, p.logFile)
			_ = p.command.Process.Signal(syscall.SIGQUIT) // it writes its stacks, and ends
			<-p.exited
		}
	})
	return err
}
