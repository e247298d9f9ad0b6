package environment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"
)

// Controller is a running controller process.
type Controller struct {
	*Process

	health   string
	catalogs string
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
	command := e.Memory.command(e.controller, append([]string{
		"--leader-elect",
		"--min-ready-seconds=0", // pods are simulated: those who test the time give it
		"--kubeconfig=" + e.kubeconfig,
		"--system-namespace=" + SystemNamespace,
		"--cache-path=" + filepath.Join(e.dir, "cache"),
		"--health-probe-bind-address=" + health,
		"--catalog-server-bind-address=" + catalogs,
		"--catalog-server-external-url=http://" + catalogs,
	}, args...)...)
	command.Env = e.environ()
	e.statuses.begin(time.Now())
	process, err := StartProcess("the controller", logFile, command)
	if err != nil {
		return nil, err
	}
	return &Controller{Process: process, health: health, catalogs: catalogs}, nil
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

// CatalogServer is the address of its catalog server, which speaks http.
func (c *Controller) CatalogServer() string { return c.catalogs }
