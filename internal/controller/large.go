package controller

import (
	"context"
	"errors"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/turn"
)

const (
	// largeBundle is from how many bytes on a bundle waits for its turn before it is
	// parsed, which takes ten times as much. The largest published ones have half of it.
	largeBundle = 4 << 20

	// largeObjects is from how many objects on a bundle waits for its turn before it is
	// applied. The largest published ones have half as many.
	largeObjects = 128
)

// takeTurnFor fails with [turn.ErrWait] if the files are many bytes, and it is not their
// turn. What cannot be read is told by who needs it.
func takeTurnFor(ctx context.Context, files fs.FS) error {
	var size int64
	err := fs.WalkDir(files, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // see above
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if size += info.Size(); size > largeBundle {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil || size <= largeBundle {
		return err
	}
	return turn.Take(ctx)
}

// isQueued says that a pass ends because it is not its turn.
func isQueued(err error) bool { return errors.Is(err, turn.ErrWait) }

// done is for the end of a pass that had the files of an image: they stay at hand for the
// next one if it waits only for its turn. To ask for the image of a tag again could
// take longer than a turn is kept.
func (r *Reconciler) done(extension string, image BundleImage, files Files, waiting bool) {
	if !waiting {
		files.Close()
		return
	}
	r.pulls.Store(extension, pull{image: image, since: r.Now(), told: true, files: &files})
}
