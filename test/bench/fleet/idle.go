package main

import (
	"context"
	"fmt"
	"time"
)

const (
	idleSpan     = time.Minute
	idleCPULimit = 0.2
)

// idle measures a controller with 50 extensions that nobody touches.
func (f *fleet) idle(ctx context.Context) (over, err error) {
	if err := f.install(ctx); err != nil {
		return nil, err
	}
	cpu, err := f.idleCPU(ctx, "idle")
	if err != nil {
		return nil, err
	}
	return f.report.Check("60 idle seconds, 50 extensions", "cpu-seconds", cpu, idleCPULimit), nil
}

// idle measures a controller with 1,000.
func (c *crowd) idle(ctx context.Context) (over, err error) {
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	cpu, err := c.idleCPU(ctx, "crowd-idle")
	if err != nil {
		return nil, err
	}
	return c.report.Tell(fmt.Sprintf("60 idle seconds, %d extensions", c.size), "cpu-seconds", cpu), nil
}

func (b *bench) idleCPU(ctx context.Context, name string) (float64, error) {
	say("idling for %s", idleSpan)
	before, err := b.usage()
	if err != nil {
		return 0, err
	}
	wait := b.details.profile(ctx, name, int(idleSpan.Seconds()))
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(idleSpan):
	}
	after, err := b.usage()
	if err != nil {
		return 0, err
	}
	return after.CPUSeconds - before.CPUSeconds, wait()
}
