package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

const (
	fleetSize = 50
	rounds    = 3
)

// What installs and upgrades may take at most.
const (
	requestsLimit   = 2*objectsPerExtension + 10
	floorRatioLimit = 3
	installCPULimit = 4
	upgradeCPULimit = 5
	fleetPeakLimit  = 90
)

// work is what one install or upgrade of the whole fleet took.
type work struct {
	floor, wall time.Duration
	// Per extension. Requests have watches among them.
	requests, watches, writes float64
	used                      measure.Usage // CPU of this work alone
}

// round is one of several: results are the medians of all.
type round struct{ install, upgrade work }

// fleet installs and upgrades 50 extensions, and leaves those of the last round
// and their controller.
func (b *bench) fleet(ctx context.Context) (over, err error) {
	var done []round
	for number := range rounds {
		say("round %d of %d", number+1, rounds)
		one, err := b.round(ctx, number)
		if err != nil {
			return nil, err
		}
		done = append(done, one)
	}
	return errors.Join(
		b.tell("install 50 extensions", done, installCPULimit, func(r round) work { return r.install }),
		b.tell("upgrade 50 extensions", done, upgradeCPULimit, func(r round) work { return r.upgrade }),
		b.tellMemory("50 extensions, installed and upgraded", done),
	), nil
}

func (b *bench) round(ctx context.Context, number int) (round, error) {
	var result round
	fleet := names(fmt.Sprintf("fleet-%d", number), fleetSize)
	warm := names(fmt.Sprintf("warm-%d", number), 1)
	floor, err := b.begin(ctx, number, append(fleet, warm...))
	if err != nil {
		return round{}, err
	}
	if result.install.floor, err = floor.create(ctx); err != nil {
		return round{}, err
	}
	if err := b.quiet(ctx); err != nil {
		return round{}, err
	}
	if result.upgrade.floor, err = floor.update(ctx); err != nil {
		return round{}, err
	}
	if err := errors.Join(floor.remove(ctx), b.warmUp(ctx, warm)); err != nil {
		return round{}, err
	}
	err = b.work(ctx, "install", &result.install, at(fleet, firstVersion), func() error {
		return b.create(ctx, generatedExtensions(fleet, firstVersion)...)
	})
	if err != nil {
		return round{}, err
	}
	return result, b.work(ctx, "upgrade", &result.upgrade, at(fleet, nextVersion), func() error {
		return b.change(ctx, fleet, nextVersion)
	})
}

// begin removes the extensions of the last round and makes what those of the next
// one, and its floor, need.
func (b *bench) begin(ctx context.Context, number int, packages []string) (*floor, error) {
	if b.controller != nil {
		if err := errors.Join(b.remove(ctx), b.stopController()); err != nil {
			return nil, err
		}
	}
	names := names(fmt.Sprintf("floor-%d", number), fleetSize)
	floor, err := newFloor(b.Cluster.RESTConfig(), names)
	if err != nil {
		return nil, err
	}
	return floor, errors.Join(
		b.prepare(ctx, slices.Concat(packages, names)),
		b.publish(ctx, fmt.Sprintf("fleet-%d", number), packages, whole),
		b.quiet(ctx),
	)
}

// warmUp starts the controller and has it install something, so that it has read
// the catalog and knows the cluster.
func (b *bench) warmUp(ctx context.Context, packages []string) error {
	if _, err := b.startController(ctx); err != nil {
		return err
	}
	_, err := b.arrival(ctx, at(packages, firstVersion), func() error {
		return b.create(ctx, generatedExtensions(packages, firstVersion)...)
	})
	if err != nil {
		return err
	}
	return errors.Join(b.remove(ctx), b.quiet(ctx))
}

// work measures act, and what it causes until all is quiet again.
func (b *bench) work(ctx context.Context, name string, result *work, want map[string]string, act func() error) error {
	before, err := b.usage()
	if err != nil {
		return err
	}
	b.audit.mark()
	const profiled = 10
	wait := b.details.profile(ctx, name, profiled)
	if result.wall, err = b.arrival(ctx, want, act); err != nil {
		return err
	}
	if err := errors.Join(wait(), b.quiet(ctx)); err != nil {
		return err
	}
	if result.used, err = b.usage(); err != nil {
		return err
	}
	result.used.CPUSeconds -= before.CPUSeconds
	requests, err := b.audit.requests()
	if err != nil {
		return err
	}
	result.requests = float64(len(requests)) / float64(len(want))
	result.watches = float64(watches(requests)) / float64(len(want))
	result.writes = float64(writes(requests)) / float64(len(want))
	return b.details.requests(name, requests, len(want))
}

func (b *bench) tell(name string, done []round, cpuLimit float64, of func(round) work) error {
	median := func(figure func(work) float64) float64 {
		return medianOf(done, func(r round) float64 { return figure(of(r)) })
	}
	return errors.Join(
		b.report.Tell(name, "floor-seconds", median(func(w work) float64 { return w.floor.Seconds() })),
		b.report.Tell(name, "wall-seconds", median(func(w work) float64 { return w.wall.Seconds() })),
		b.report.Check(name, "wall-to-floor-ratio",
			median(func(w work) float64 { return w.wall.Seconds() / w.floor.Seconds() }), floorRatioLimit),
		b.report.Check(name, "requests/extension", median(func(w work) float64 { return w.requests }), requestsLimit),
		b.report.Tell(name, "watches/extension", median(func(w work) float64 { return w.watches })),
		b.report.Tell(name, "writes/extension", median(func(w work) float64 { return w.writes })),
		b.report.Check(name, "cpu-seconds", median(func(w work) float64 { return w.used.CPUSeconds }), cpuLimit),
	)
}

func (b *bench) tellMemory(name string, done []round) error {
	median := func(figure func(measure.Usage) int64) float64 {
		return medianOf(done, func(r round) float64 { return measure.Mebibytes(figure(r.upgrade.used)) })
	}
	return errors.Join(
		b.report.Check(name, "peak-MiB", median(func(u measure.Usage) int64 { return u.PeakBytes }), fleetPeakLimit),
		b.report.Tell(name, "resident-anonymous-MiB", median(func(u measure.Usage) int64 { return u.AnonymousBytes })),
		b.report.Tell(name, "resident-file-MiB", median(func(u measure.Usage) int64 { return u.FileBytes })),
	)
}

func medianOf(done []round, figure func(round) float64) float64 {
	figures := make([]float64, 0, len(done))
	for _, one := range done {
		figures = append(figures, figure(one))
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}
