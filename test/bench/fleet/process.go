package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// catalogsURL is where every controller says that catalogs are served, as all replicas
// behind one Service do. A controller reads those that it has from itself, so that nobody
// has to be there.
const catalogsURL = "http://catalogs.test"

// startController starts one with an empty memory, instead of those that run, and returns
// when it is ready. It returns the path of its log, which holds no other's.
func (b *bench) startController(ctx context.Context, args ...string) (log string, err error) {
	if err := b.stopControllers(); err != nil {
		return "", err
	}
	b.controller, log, err = b.startReplica(ctx, args...)
	return log, err
}

// launchController is startController that does not wait.
func (b *bench) launchController(args ...string) (err error) {
	if err := b.stopControllers(); err != nil {
		return err
	}
	args, log, err := b.arguments(args)
	if err != nil {
		return err
	}
	b.controller, err = b.LaunchController(log, args...)
	return err
}

// startFollower starts a second replica, which has a disk of its own, and returns when it
// is ready, with the catalogs.
func (b *bench) startFollower(ctx context.Context) error {
	cache, err := os.MkdirTemp(b.dir, "cache-")
	if err != nil {
		return err
	}
	b.follower, _, err = b.startReplica(ctx, "--cache-path="+cache)
	return err
}

func (b *bench) startReplica(ctx context.Context, args ...string) (_ *environment.Controller, log string, err error) {
	args, log, err = b.arguments(args)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	controller, err := b.StartController(ctx, log, args...)
	return controller, log, err
}

// arguments are those of a new process, and the path of its log.
func (b *bench) arguments(args []string) (all []string, log string, err error) {
	profiling, err := b.details.arguments()
	log = filepath.Join(b.dir, fmt.Sprintf("controller-%d.log", time.Now().UnixNano()))
	return slices.Concat([]string{"--catalog-server-external-url=" + catalogsURL}, profiling, args), log, err
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// stopControllers stops what runs. The follower is first, so that it never leads.
func (b *bench) stopControllers() error {
	var errs []error
	for _, running := range []**environment.Controller{&b.follower, &b.controller} {
		if *running != nil {
			errs = append(errs, (*running).Stop())
			*running = nil
		}
	}
	return errors.Join(errs...)
}

// usage is what the controller took since it started.
func (b *bench) usage() (measure.Usage, error) { return measure.Of(b.controller.PID()) }

// apiServerUsage is what the API server took since it started.
func (b *bench) apiServerUsage() (measure.Usage, error) {
	return measure.Of(b.Cluster.Processes()["kube-apiserver"])
}

// A cluster counts as quiet when its processes and the controllers take less than
// quietShare of one CPU for as long as quietSpan.
const (
	quietShare = 0.25
	quietSpan  = time.Second
	quietLimit = 3 * time.Minute
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

// cpuSeconds is what the components of the cluster and the controllers took.
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
	for _, controller := range []*environment.Controller{b.controller, b.follower} {
		if controller != nil {
			add(controller.PID())
		}
	}
	return all, errors.Join(errs...)
}
