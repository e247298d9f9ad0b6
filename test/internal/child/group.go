package child

import (
	"errors"
	"runtime"
	"sync"
)

// ErrClosed is the error of Start on a closed Group.
var ErrClosed = errors.New("process group is closed")

// Group starts processes and watches over them. Its methods may be used by
// several goroutines.
type Group struct {
	starts chan func() *Process
	closed chan struct{}
	lost   chan struct{}

	closing sync.Once
	losing  sync.Once
	lostErr error
}

// NewGroup returns an empty group. Close ends it.
func NewGroup() *Group {
	g := &Group{
		starts: make(chan func() *Process),
		closed: make(chan struct{}),
		lost:   make(chan struct{}),
	}
	go g.serveStarts()
	return g
}

// serveStarts starts every process of the group from one operating system
// thread that lives as long as the group: the parent death signal is sent when
// the thread that forked ends, and the Go runtime ends threads as it likes. It
// does not end the main thread, which this may be, so what still runs at the
// end is killed by hand.
func (g *Group) serveStarts() {
	runtime.LockOSThread()
	var started []*Process
	for {
		select {
		case start := <-g.starts:
			if process := start(); process != nil {
				started = append(started, process)
			}
		case <-g.closed:
			for _, process := range started {
				process.kill()
			}
			return
		}
	}
}

// Start runs the command. The error is ErrClosed after Close, or says why the
// command cannot be run.
func (g *Group) Start(command Command) (*Process, error) {
	var process *Process
	var err error
	started := make(chan struct{})
	start := func() *Process {
		defer close(started)
		process, err = start(command)
		return process
	}
	select {
	case g.starts <- start:
		<-started
	case <-g.closed:
		return nil, ErrClosed
	}
	if err != nil {
		return nil, err
	}
	go g.watch(process)
	return process, nil
}

func (g *Group) watch(process *Process) {
	<-process.exited
	if process.stopping.Load() {
		return
	}
	g.losing.Do(func() {
		g.lostErr = process.exitError()
		close(g.lost)
	})
}

// Lost is closed as soon as a process has ended that nobody stopped.
func (g *Group) Lost() <-chan struct{} {
	return g.lost
}

// Err is nil until Lost is closed, and then the *ExitError of the first process
// that ended on its own.
func (g *Group) Err() error {
	select {
	case <-g.lost:
		return g.lostErr
	default:
		return nil
	}
}

// Close ends the group. Processes that still run are killed; stop them first.
func (g *Group) Close() {
	g.closing.Do(func() { close(g.closed) })
}
