package controller

import (
	"context"
	"errors"
	"io/fs"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

const (
	// largeBundle is from how many bytes on a bundle waits for its turn before it is
	// parsed, and largeValues from how many characters on that stand between values, in
	// texts as well: a value takes about a kilobyte until it is applied, however short it
	// is. One in twenty of those that are published has more of either.
	largeBundle = 512 << 10
	largeValues = 16_384

	// largeObjects is from how many objects on a bundle waits for its turn before it is
	// applied. The largest published ones have half as many.
	largeObjects = 128

	// maxKeptFiles is of how many extensions that wait for their turn the files stay at
	// hand. What is in use stays in the cache, where others need room.
	maxKeptFiles = 8
)

// takeTurnFor fails with [turn.ErrWait] if the files are large, or a chart, and it is not their turn.
// Charts wait for each other, and not in the way of others that are large.
func takeTurnFor(ctx context.Context, files fs.FS) error {
	switch {
	case bundle.IsChart(files): // how much its templates take shows only when they are rendered
		return turn.TakeOf(ctx, turn.Charts)
	case isLarge(files):
		return turn.Take(ctx)
	}
	return nil
}

// isLarge reads no more than it takes to know. What cannot be read is told by who needs it.
func isLarge(files fs.FS) (large bool) {
	size, values := int64(0), 0
	_ = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // see above
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if size += info.Size(); size <= largeBundle {
			values += valuesIn(files, path)
		}
		if large = size > largeBundle || values > largeValues; large {
			return fs.SkipAll
		}
		return nil
	})
	return large
}

// valuesIn counts what stands between values in a file of YAML or JSON.
func valuesIn(files fs.FS, path string) (count int) {
	data, err := fs.ReadFile(files, path)
	if err != nil {
		return 0
	}
	for _, c := range data {
		switch c {
		case ':', ',', '-', '?':
			count++
		}
	}
	return count
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
	r.pulls.Store(extension, pull{image: image, since: r.Now(), reported: true, files: &files})
}
