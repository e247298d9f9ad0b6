package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/test/internal/child"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// Cluster is a running control plane.
type Cluster struct {
	options   Options
	binaries  programs.Binaries
	dir       *workDir
	logs      string
	authority *authority

	host   string
	admin  *rest.Config
	client kubernetes.Interface

	egress *egress
	group  *child.Group
	// tiers are the components, each tier after those it depends on.
	tiers [][]*child.Process

	stopping sync.Once
	stopErr  error
}

// ExitError says that a component ended on its own, and quotes the end of its
// log.
type ExitError = child.ExitError

// StartError says that a cluster did not start. It wraps the cause, which is an
// *ExitError if a component ended.
type StartError struct {
	// Logs is the directory with the logs of the components.
	Logs string
	// Err is what went wrong.
	Err error
}

// Error names the cause and the place of the logs.
func (e *StartError) Error() string {
	return fmt.Sprintf("starting cluster (logs are kept in %s): %v", e.Logs, e.Err)
}

// Unwrap is the cause.
func (e *StartError) Unwrap() error {
	return e.Err
}

// Start starts a cluster and returns when it can be used: the API server is
// ready, the default ServiceAccount exists and pods can be scheduled. The
// context bounds the start, not the life of the cluster, which ends with Stop.
//
// The error is ErrInvalidOptions or ErrDirInUse for a mistake of the caller, a
// *programs.BuildError if a program cannot be built, and a *StartError if the cluster
// does not start; then nothing is left but its logs.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.completed()
	if err != nil {
		return nil, err
	}
	if options.Binaries == nil {
		if options.Binaries, err = programs.Build(ctx, options.Progress); err != nil {
			return nil, err
		}
	}
	c, err := newCluster(options)
	if err != nil {
		return nil, err
	}
	if err := c.boot(ctx); err != nil {
		return nil, errors.Join(&StartError{Logs: c.logs, Err: err}, c.abandon())
	}
	return c, nil
}

// newCluster makes the directories of a cluster.
func newCluster(options Options) (*Cluster, error) {
	dir, err := newWorkDir(options.Dir)
	if err != nil {
		return nil, err
	}
	logs := options.LogDir
	if logs == "" {
		logs = dir.join(workDirLogs)
	}
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("making log directory: %w", err), dir.remove())
	}
	return &Cluster{
		options:  options,
		binaries: *options.Binaries,
		dir:      dir,
		logs:     logs,
		group:    child.NewGroup(),
	}, nil
}

// Binaries are the programs that the cluster runs, and kubectl.
func (c *Cluster) Binaries() programs.Binaries {
	return c.binaries
}

// AuditLog is the path of the audit log, or empty if there is none.
func (c *Cluster) AuditLog() string {
	if c.options.Audit == nil {
		return ""
	}
	return c.options.Audit.Log
}

// Processes are the process ids of the components, by name.
func (c *Cluster) Processes() map[string]int {
	ids := make(map[string]int)
	for _, process := range slices.Concat(c.tiers...) {
		ids[process.Name()] = process.PID()
	}
	return ids
}

// Wait returns nil when the context ends, or the *ExitError of the first
// component that ends on its own.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.group.Lost():
		return c.group.Err()
	}
}

// Stop ends every component and removes the working directory. It returns when
// no process is left; the error says what could not be removed. It may be called
// again and then returns the same.
func (c *Cluster) Stop() error {
	c.stopping.Do(func() {
		c.stopProcesses()
		c.stopErr = c.dir.remove()
	})
	return c.stopErr
}

// abandon is Stop for a cluster that did not start: the logs stay.
func (c *Cluster) abandon() error {
	c.stopProcesses()
	if c.options.LogDir != "" {
		return c.dir.remove()
	}
	return c.dir.removeAllButLogs()
}

// stopProcesses kills all components. Their data is deleted, and a graceful API server would wait for
// its clients.
func (c *Cluster) stopProcesses() {
	var stopped sync.WaitGroup
	for _, tier := range c.tiers {
		for _, process := range tier {
			stopped.Go(func() { process.Stop(0) })
		}
	}
	stopped.Wait()
	c.group.Close()
	c.egress.stop()
}
