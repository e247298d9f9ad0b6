package cluster

import (
	"context"
	"io"
	"path/filepath"
)

// opmSource is the folder of hack with the module that pins opm.
const opmSource = "opm"

// BuildOPM is [Build] for opm, and gives its path: what is not in the cache yet takes minutes.
func BuildOPM(ctx context.Context, progress io.Writer) (opm string, err error) {
	err = inCache(ctx, opmSource, func(ctx context.Context, from *source, dir string) error {
		opm = filepath.Join(dir, opmSource)
		return from.provide(ctx, "github.com/operator-framework/operator-registry/cmd/opm", opm, progress)
	})
	return opm, err
}
