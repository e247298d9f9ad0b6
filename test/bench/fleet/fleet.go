package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

const (
	fleetSize = 50
	rounds    = 3
)

// What installs and upgrades may take at most.
const (
	installRequestsLimit = 28
	upgradeRequestsLimit = 21
	floorRatioLimit      = 3
	installCPULimit      = 4
	upgradeCPULimit      = 5
	fleetPeakLimit       = 90
)

// fleet is 50 extensions of nine objects.
type fleet struct {
	*bench

	installed bool
}

// round is one of several: results are the medians of all.
type round struct{ install, upgrade work }

// work installs and upgrades 50 extensions, and leaves those of the last round and their
// controller.
func (f *fleet) work(ctx context.Context) (over, err error) {
	var done []round
	for number := range rounds {
		say("round %d of %d", number+1, rounds)
		one, err := f.round(ctx, number)
		if err != nil {
			return nil, err
		}
		done = append(done, one)
	}
	f.installed = true
	return errors.Join(
		f.tell("install 50 extensions", done, installRequestsLimit, installCPULimit, func(r round) work { return r.install }),
		f.tell("upgrade 50 extensions", done, upgradeRequestsLimit, upgradeCPULimit, func(r round) work { return r.upgrade }),
		f.tellMemory("50 extensions, installed and upgraded", done),
	), nil
}

// install has 50 extensions installed, unless that has been measured.
func (f *fleet) install(ctx context.Context) error {
	if f.installed {
		return nil
	}
	say("installing %d extensions", fleetSize)
	fleet := names("fleet-0", fleetSize)
	if err := errors.Join(f.prepare(ctx, fleet), f.publish(ctx, "fleet-0", fleet, whole)); err != nil {
		return err
	}
	if _, err := f.startController(ctx); err != nil {
		return err
	}
	_, err := f.arrival(ctx, at(fleet, firstVersion), func() error {
		return f.create(ctx, generatedExtensions(fleet)...)
	})
	f.installed = true
	return errors.Join(err, f.quiet(ctx))
}

func (f *fleet) round(ctx context.Context, number int) (round, error) {
	fleet := names(fmt.Sprintf("fleet-%d", number), fleetSize)
	warm := names(fmt.Sprintf("warm-%d", number), 1)
	floor, err := f.begin(ctx, number, append(fleet, warm...))
	if err != nil {
		return round{}, err
	}
	floorInstall, err := f.workOfFloor(ctx, floor.create)
	if err != nil {
		return round{}, err
	}
	floorUpgrade, err := f.workOfFloor(ctx, floor.update)
	if err != nil {
		return round{}, err
	}
	if err := errors.Join(floor.remove(ctx), f.warmUp(ctx, warm)); err != nil {
		return round{}, err
	}
	var done round
	done.install, err = f.workOn(ctx, "install", at(fleet, firstVersion), func() error {
		return f.create(ctx, generatedExtensions(fleet)...)
	})
	if err != nil {
		return round{}, err
	}
	done.upgrade, err = f.workOn(ctx, "upgrade", at(fleet, nextVersion), func() error {
		return f.change(ctx, fleet, nextVersion)
	})
	done.install.floor, done.upgrade.floor = floorInstall, floorUpgrade
	return done, err
}

// begin removes the extensions of the last round and makes what those of the next
// one, and its floor, need.
func (f *fleet) begin(ctx context.Context, number int, packages []string) (*floor, error) {
	if f.controller != nil {
		if err := errors.Join(f.remove(ctx), f.stopControllers()); err != nil {
			return nil, err
		}
	}
	names := names(fmt.Sprintf("floor-%d", number), fleetSize)
	floor, err := newFloor(f.Cluster.RESTConfig(), names, whole)
	if err != nil {
		return nil, err
	}
	return floor, errors.Join(
		f.prepare(ctx, slices.Concat(packages, names)),
		f.publish(ctx, fmt.Sprintf("fleet-%d", number), packages, whole),
		f.quiet(ctx),
	)
}

func (f *fleet) tell(name string, done []round, requestsLimit, cpuLimit float64, of func(round) work) error {
	median := func(figure func(work) float64) float64 {
		return medianOf(done, func(r round) float64 { return figure(of(r)) })
	}
	return errors.Join(
		f.report.Tell(name, "floor-seconds", median(func(w work) float64 { return w.floor.wall.Seconds() })),
		f.report.Tell(name, "wall-seconds", median(func(w work) float64 { return w.wall.Seconds() })),
		f.report.Check(name, "wall-to-floor-ratio", median(work.wallToFloor), floorRatioLimit),
		f.report.Check(name, "requests-but-watches/extension", median(func(w work) float64 { return w.requests }), requestsLimit),
		f.report.Tell(name, "watches/extension", median(func(w work) float64 { return w.watches })),
		f.report.Tell(name, "writes/extension", median(func(w work) float64 { return w.writes })),
		f.report.Check(name, "cpu-seconds", median(func(w work) float64 { return w.used.CPUSeconds }), cpuLimit),
	)
}

func (f *fleet) tellMemory(name string, done []round) error {
	median := func(figure func(measure.Usage) int64) float64 {
		return medianOf(done, func(r round) float64 { return measure.Mebibytes(figure(r.upgrade.used)) })
	}
	return errors.Join(
		f.report.Check(name, "peak-MiB", median(func(u measure.Usage) int64 { return u.PeakBytes }), fleetPeakLimit),
		f.report.Tell(name, "resident-anonymous-MiB", median(func(u measure.Usage) int64 { return u.AnonymousBytes })),
		f.report.Tell(name, "resident-file-MiB", median(func(u measure.Usage) int64 { return u.FileBytes })),
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
