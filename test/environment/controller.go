package environment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a controller may take to stop on its own.
const stopGrace = 30 * time.Second

// Controller is a running controller process.
type Controller struct {
	command  *exec.Cmd
	health   string
	catalogs string
	logFile  string
	exited   chan struct{}

	once sync.Once
}

// StartController starts the controller as its own ServiceAccount and returns
// when it is ready. Its log goes to logFile, at the end. Controllers that are
// started one after the other share their cache.
func (e *Environment) StartController(ctx context.Context, logFile string, args ...string) (*Controller, error) {
	controller, err := e.LaunchController(logFile, args...)
	if err != nil {
		return nil, err
	}
	if err := controller.waitReady(ctx); err != nil {
		return nil, errors.Join(err, controller.Kill())
	}
	return controller, nil
}

// LaunchController is StartController that does not wait.
func (e *Environment) LaunchController(logFile string, args ...string) (*Controller, error) {
	health, err := freePort()
	if err != nil {
		return nil, err
	}
	catalogs, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the controller's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	controller := &Controller{health: health, catalogs: catalogs, logFile: logFile, exited: make(chan struct{})}
	controller.command = e.Memory.command(filepath.Join(e.programs, "operator-controller"), append([]string{
		"--leader-elect",
		"--min-ready-seconds=0", // pods are simulated: those who test the time give it
		"--kubeconfig=" + e.kubeconfig,
		"--system-namespace=" + SystemNamespace,
		"--cache-path=" + filepath.Join(e.dir, "cache"),
		"--health-probe-bind-address=" + health,
		"--catalog-server-bind-address=" + catalogs,
		"--catalog-server-external-url=http://" + catalogs,
	}, args...)...)
	controller.command.Env = e.environ()
	controller.command.Stdout, controller.command.Stderr = log, log
	if err := controller.start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	return controller, nil
}

// start has a thread to itself: the kernel ends the process with it. A controller waits for
// a cluster that has gone, and would outlive tests that were killed.
func (c *Controller) start() error {
	c.command.SysProcAttr = endWithUs()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := c.command.Start()
		started <- err
		if err == nil {
			_ = c.command.Wait()
			close(c.exited)
		}
	}()
	return <-started
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func (c *Controller) waitReady(ctx context.Context) error {
	for {
		if c.IsReady(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the controller did not become ready: %w (log: %s)", ctx.Err(), c.logFile)
		case <-c.exited:
			return c.Running()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// IsReady asks the process as a node does.
func (c *Controller) IsReady(ctx context.Context) bool { return c.answers(ctx, "/readyz") }

// IsLive asks the process as a node does.
func (c *Controller) IsLive(ctx context.Context) bool { return c.answers(ctx, "/healthz") }

func (c *Controller) answers(ctx context.Context, path string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.health+path, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// PID is the id of the process.
func (c *Controller) PID() int { return c.command.Process.Pid }

// Running is an error if the process has ended.
func (c *Controller) Running() error {
	select {
	case <-c.exited:
		return fmt.Errorf("the controller ended: %s (log: %s)", c.command.ProcessState, c.logFile)
	default:
		return nil
	}
}

// CatalogServer is the address of its catalog server, which speaks http.
func (c *Controller) CatalogServer() string { return c.catalogs }

// Kill ends the process at once, as a crash does.
func (c *Controller) Kill() error { return c.end(syscall.SIGKILL) }

// Stop asks the process to end, and reports when it did not do so in order.
func (c *Controller) Stop() error {
	if err := c.end(syscall.SIGTERM); err != nil {
		return err
	}
	if code := c.command.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the controller ended with status %d (log: %s)", code, c.logFile)
	}
	return nil
}

func (c *Controller) end(signal syscall.Signal) error {
	var err error
	c.once.Do(func() {
		_ = c.command.Process.Signal(signal)
		select {
		case <-c.exited:
		case <-time.After(stopGrace):
			err = fmt.Errorf("the controller did not stop within %s, what it does is in its log (%s)", stopGrace, c.logFile)
			_ = c.command.Process.Signal(syscall.SIGQUIT) // it writes its stacks, and ends
			<-c.exited
		}
	})
	return err
}
