package controller

import (
	"context"
	"errors"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/turn"
)

const (
	// largeBundle is from how many bytes on a bundle waits for its turn before it is
	// parsed. That takes a hundred times as much memory where there are many small values.
	// One in thirty of those that are published has more.
	largeBundle = 512 << 10

	// largeObjects is from how many objects on a bundle waits for its turn before it is
	// applied. The largest published ones have half as many.
	largeObjects = 128

	// maxKeptFiles is of how many extensions that wait for their turn the files stay at
	// hand. What is in use stays in the cache, where others need room.
	maxKeptFiles = 8
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
// next one if it waits only for its turn, and not too many do. To ask for the image of a
// tag again could take longer than a turn is kept.
func (r *Reconciler) done(extension string, image BundleImage, files Files, waiting bool) {
	if !waiting {
		files.Close()
		return
	}
	if r.keptFiles.Add(1) > maxKeptFiles {
		r.keptFiles.Add(-1)
		files.Close()
		return
	}
	r.pulls.Store(extension, pull{image: image, since: r.Now(), told: true, files: &files})
}
