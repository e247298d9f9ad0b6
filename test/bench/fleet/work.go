package main

import (
	"context"
	"errors"
	"time"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

// work is what it took to install or upgrade many extensions at once.
type work struct {
	floor floorWork
	wall  time.Duration
	// Per extension. Watches are not among requests.
	requests, watches, writes float64
	// CPU is that of this work alone, until all was quiet again.
	used, apiServer measure.Usage
}

// floorWork is what the same objects cost without a controller.
type floorWork struct {
	wall      time.Duration
	apiServer measure.Usage // CPU of this work alone
}

func (w work) wallToFloor() float64 { return w.wall.Seconds() / w.floor.wall.Seconds() }

func (w work) apiServerCPUToFloor() float64 {
	return w.apiServer.CPUSeconds / w.floor.apiServer.CPUSeconds
}

// warmUp starts the controller and has it install something, so that it has read
// the catalog and knows the cluster.
func (b *bench) warmUp(ctx context.Context, packages []string) error {
	if _, err := b.startController(ctx); err != nil {
		return err
	}
	_, err := b.arrival(ctx, at(packages, firstVersion), func() error {
		return b.create(ctx, generatedExtensions(packages)...)
	})
	if err != nil {
		return err
	}
	return errors.Join(b.remove(ctx), b.quiet(ctx))
}

// workOn measures act, by which extensions come to the versions that are wanted, and what
// it causes until all is quiet again.
func (b *bench) workOn(ctx context.Context, name string, want map[string]string, act func() error) (done work, err error) {
	before, err := b.usage()
	if err != nil {
		return work{}, err
	}
	b.audit.mark()
	wait := b.details.profile(ctx, name, 10+len(want)/50)
	done.apiServer, err = b.apiServerWork(func() error {
		if done.wall, err = b.arrival(ctx, want, act); err != nil {
			return err
		}
		return errors.Join(wait(), b.quiet(ctx))
	})
	if err != nil {
		return work{}, err
	}
	if done.used, err = b.usage(); err != nil {
		return work{}, err
	}
	done.used.CPUSeconds -= before.CPUSeconds
	requests, err := b.audit.requests()
	if err != nil {
		return work{}, err
	}
	each := func(count int) float64 { return float64(count) / float64(len(want)) }
	done.watches, done.writes = each(watches(requests)), each(writes(requests))
	done.requests = each(len(requests)) - done.watches
	return done, b.details.requests(name, requests, len(want))
}

// workOfFloor measures what the floor writes with act, until all is quiet again.
func (b *bench) workOfFloor(ctx context.Context, act func(context.Context) (time.Duration, error)) (done floorWork, err error) {
	done.apiServer, err = b.apiServerWork(func() error {
		if done.wall, err = act(ctx); err != nil {
			return err
		}
		return b.quiet(ctx)
	})
	return done, err
}

// apiServerWork is what the API server took, with the CPU of act alone.
func (b *bench) apiServerWork(act func() error) (measure.Usage, error) {
	before, err := b.apiServerUsage()
	if err != nil {
		return measure.Usage{}, err
	}
	if err := act(); err != nil {
		return measure.Usage{}, err
	}
	after, err := b.apiServerUsage()
	after.CPUSeconds -= before.CPUSeconds
	return after, err
}
