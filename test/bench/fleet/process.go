package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

// startController starts one with an empty memory, instead of the one that runs.
// It returns the path of its log, which holds no other's.
func (b *bench) startController(ctx context.Context, args ...string) (log string, err error) {
	if err := b.stopController(); err != nil {
		return "", err
	}
	profiling, err := b.details.arguments()
	if err != nil {
		return "", err
	}
	// Catalogs tell where they are served; that is not to change with each start.
	serving := []string{
		"--catalog-server-bind-address=" + b.catalogs,
		"--catalog-server-external-url=http://" + b.catalogs,
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	log = filepath.Join(b.logs, fmt.Sprintf("controller-%d.log", time.Now().UnixNano()))
	b.controller, err = b.StartController(ctx, log, slices.Concat(serving, profiling, args)...)
	return log, err
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (b *bench) stopController() error {
	if b.controller == nil {
		return nil
	}
	err := b.controller.Stop()
	b.controller = nil
	return err
}

func (b *bench) usage() (measure.Usage, error) { return measure.Of(b.controller.PID()) }

// A cluster counts as quiet when its processes and the controller take less than
// quietShare of one CPU for as long as quietSpan.
const (
	quietShare = 0.25
	quietSpan  = time.Second
	quietLimit = time.Minute
)

// quiet waits until what was begun is done: garbage is collected, pods are made,
// watches run.
func (b *bench) quiet(ctx context.Context) error {
	before, err := b.cpuSeconds()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(quietLimit); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quietSpan):
		}
		now, err := b.cpuSeconds()
		if err != nil || now-before < quietShare*quietSpan.Seconds() {
			return err
		}
		if time.Now().After(deadline) {
			say("the cluster does not become quiet: it takes %.2f of a CPU", (now-before)/quietSpan.Seconds())
			return nil
		}
		before = now
	}
}

// cpuSeconds is what the components of the cluster and the controller took.
func (b *bench) cpuSeconds() (float64, error) {
	var all float64
	var errs []error
	add := func(pid int) {
		used, err := measure.Of(pid)
		all += used.CPUSeconds
		errs = append(errs, err)
	}
	for _, pid := range b.Cluster.Processes() {
		add(pid)
	}
	if b.controller != nil {
		add(b.controller.PID())
	}
	return all, errors.Join(errs...)
}
