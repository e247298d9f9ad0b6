package child

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is what to run.
type Command struct {
	// Name is what people call the process.
	Name string
	// Path is the executable, Args are its arguments without its name.
	Path string
	Args []string
	// Dir is the working directory and Env the whole environment.
	Dir string
	Env []string
	// Log is the file that gets both output streams; it is appended to.
	Log string
}

// Process is a started command.
type Process struct {
	command  Command
	cmd      *exec.Cmd
	stopping atomic.Bool

	// exited is closed after waitErr is set.
	exited  chan struct{}
	waitErr error
}

func start(command Command) (*Process, error) {
	log, err := os.OpenFile(command.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log of %s: %w", command.Name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor

	//nolint:gosec,noctx // runs what it is told; the context of a start ends long before the process
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Dir = command.Dir
	cmd.Env = command.Env
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("running %s: %w", command.Name, err)
	}
	process := &Process{command: command, cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(process.exited)
		process.waitErr = cmd.Wait()
	}()
	return process, nil
}

// Command is what was run.
func (p *Process) Command() Command { return p.command }

// Name is the name of the command.
func (p *Process) Name() string {
	return p.command.Name
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// PID is the process id. It may be taken by another process once this one has
// been stopped.
func (p *Process) PID() int {
	return p.cmd.Process.Pid
}

// Stop asks the process to end, kills it when the grace is over, and returns
// when it is gone. It may be called again.
func (p *Process) Stop(grace time.Duration) {
	p.stopping.Store(true)
	// A failed signal means that the process has ended already.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return
	case <-timer.C:
	}
	p.kill()
	<-p.exited
}

// kill ends the process at once. An error means that it has ended already.
func (p *Process) kill() {
	_ = p.cmd.Process.Kill()
}

func (p *Process) exitError() *ExitError {
	return &ExitError{
		Name:   p.command.Name,
		Log:    p.command.Log,
		Tail:   tail(p.command.Log),
		Reason: p.cmd.ProcessState.String(),
	}
}
