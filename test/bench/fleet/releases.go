package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

// releases are extensions of the shape that Helm releases are measured with elsewhere.
type releases struct {
	*bench

	count int
}

// install has them installed at once. There is no limit to what that takes: it is for
// comparison, and to be drawn over the number of extensions.
func (r *releases) install(ctx context.Context) (over, err error) {
	say("installing %d releases", r.count)
	fleet, warm := names("release", r.count), names("warm", 1)
	all := slices.Concat(warm, fleet)
	if err := errors.Join(r.prepare(ctx, all), r.publish(ctx, "releases", all, released), r.warmUp(ctx, warm)); err != nil {
		return nil, err
	}
	done, err := r.workOn(ctx, fmt.Sprintf("releases-%d", r.count), at(fleet, firstVersion), func() error {
		return r.create(ctx, generatedExtensions(fleet)...)
	})
	if err != nil {
		return nil, err
	}
	const name = "install releases"
	report := r.report.For(r.count)
	return nil, errors.Join(
		report.Tell(name, "wall-seconds", done.wall.Seconds()),
		report.Tell(name, "cpu-seconds", done.used.CPUSeconds),
		report.Tell(name, "api-server-cpu-seconds", done.apiServer.CPUSeconds),
		report.Tell(name, "peak-MiB", measure.Mebibytes(done.used.PeakBytes)),
	)
}
