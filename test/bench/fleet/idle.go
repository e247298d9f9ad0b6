package main

import (
	"context"
	"time"
)

const (
	idleSpan     = time.Minute
	idleCPULimit = 0.2
)

// idle measures a controller with 50 extensions that nobody touches.
func (b *bench) idle(ctx context.Context) (over, err error) {
	cpu, err := b.idleCPU(ctx, "idle")
	if err != nil {
		return nil, err
	}
	return b.report.Check("60 idle seconds, 50 extensions", "cpu-seconds", cpu, idleCPULimit), nil
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
