package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

// What the install of the crowd may take at most.
const (
	crowdFloorRatioLimit     = 3
	crowdCPULimit            = 30
	crowdAPIServerRatioLimit = 3
	crowdPeakLimit           = 180
)

// work installs the crowd and upgrades a fifth of it, and leaves it and its controller.
func (c *crowd) work(ctx context.Context) (over, err error) {
	warm := names("warm", 1)
	if err := c.furnish(ctx, warm...); err != nil {
		return nil, err
	}
	install, upgrade, err := c.floorWork(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.warmUp(ctx, warm); err != nil {
		return nil, err
	}
	say("installing %d extensions", c.size)
	installed, err := c.workOn(ctx, "crowd-install", at(c.names, firstVersion), func() error { return c.createAll(ctx) })
	if err != nil {
		return nil, err
	}
	some := c.names[:c.fifth()]
	say("upgrading %d of them", len(some))
	upgraded, err := c.workOn(ctx, "crowd-upgrade", at(some, nextVersion), func() error {
		return c.change(ctx, some, nextVersion)
	})
	if err != nil {
		return nil, err
	}
	c.installed = true
	installed.floor, upgraded.floor = install, upgrade
	return errors.Join(c.tellInstall(installed), c.tellUpgrade(upgraded)), nil
}

// floorWork is that of an install of as many, and of an upgrade of a fifth. Nothing of it
// is left.
func (c *crowd) floorWork(ctx context.Context) (install, upgrade floorWork, err error) {
	say("writing the objects of %d extensions", c.size)
	names := names("floor", c.size)
	all, err := newFloor(c.Cluster.RESTConfig(), names, small)
	if err != nil {
		return install, upgrade, err
	}
	if err := errors.Join(c.prepare(ctx, names), c.quiet(ctx)); err != nil {
		return install, upgrade, err
	}
	if install, err = c.workOfFloor(ctx, all.create); err != nil {
		return install, upgrade, err
	}
	if upgrade, err = c.workOfFloor(ctx, all.first(c.fifth()).update); err != nil {
		return install, upgrade, err
	}
	return install, upgrade, errors.Join(all.remove(ctx), c.quiet(ctx))
}

func (c *crowd) tellInstall(w work) error {
	name := c.called("install %d extensions")
	return errors.Join(
		c.report.Tell(name, "floor-seconds", w.floor.wall.Seconds()),
		c.report.Tell(name, "wall-seconds", w.wall.Seconds()),
		c.report.Check(name, "wall-to-floor-ratio", w.wallToFloor(), crowdFloorRatioLimit),
		c.report.Check(name, "cpu-seconds", w.used.CPUSeconds, crowdCPULimit),
		c.report.Tell(name, "floor-api-server-cpu-seconds", w.floor.apiServer.CPUSeconds),
		c.report.Tell(name, "api-server-cpu-seconds", w.apiServer.CPUSeconds),
		c.report.Check(name, "api-server-cpu-to-floor-ratio", w.apiServerCPUToFloor(), crowdAPIServerRatioLimit),
		c.tellRequests(name, w),
		c.tellMemory(name, w),
		c.report.Tell(name, "floor-api-server-resident-MiB", measure.Mebibytes(w.floor.apiServer.ResidentBytes)),
		c.report.Tell(name, "api-server-resident-MiB", measure.Mebibytes(w.apiServer.ResidentBytes)),
	)
}

func (c *crowd) tellUpgrade(w work) error {
	name := fmt.Sprintf("upgrade %d of %d extensions", c.fifth(), c.size)
	return errors.Join(
		c.report.Tell(name, "floor-seconds", w.floor.wall.Seconds()),
		c.report.Tell(name, "wall-seconds", w.wall.Seconds()),
		c.report.Tell(name, "wall-to-floor-ratio", w.wallToFloor()),
		c.report.Tell(name, "cpu-seconds", w.used.CPUSeconds),
		c.report.Tell(name, "api-server-cpu-to-floor-ratio", w.apiServerCPUToFloor()),
		c.tellRequests(name, w),
		c.tellMemory(name, w),
	)
}

func (c *crowd) tellRequests(name string, w work) error {
	return errors.Join(
		c.report.Tell(name, "requests-but-watches/extension", w.requests),
		c.report.Tell(name, "watches/extension", w.watches),
		c.report.Tell(name, "writes/extension", w.writes),
	)
}

// tellMemory is about the process, which has all of the crowd in any case.
func (c *crowd) tellMemory(name string, w work) error {
	return errors.Join(
		c.report.Check(name, "peak-MiB", measure.Mebibytes(w.used.PeakBytes), crowdPeakLimit),
		c.report.Tell(name, "resident-anonymous-MiB", measure.Mebibytes(w.used.AnonymousBytes)),
		c.report.Tell(name, "resident-file-MiB", measure.Mebibytes(w.used.FileBytes)),
	)
}
