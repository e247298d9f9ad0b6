package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

const metadataDir = "metadata"

// Contents returns the files that are directly in manifests/ and metadata/ by their paths,
// for readers without bounds that take the first document of a file and nothing of one that
// cannot be decoded. The bounds of [Parse] hold for them. What such readers leave out is
// returned beside, sorted, and files that cannot be decoded are not among the contents. The
// error is an [*InvalidError] that lists which files exceed bounds, or that of a file that
// could not be read. What the files say is not judged.
func Contents(files fs.FS) (contents map[string][]byte, leftOut []Violation, err error) {
	c := contentsReader{
		reader: reader{files: files, remaining: MaxTotalBytes}, decoder: newDecoder(), contents: map[string][]byte{},
	}
	for _, dir := range []string{manifestsDir, metadataDir} {
		names, err := c.reader.list(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.refused.add(dir, "", "directory does not exist")
		case isFileError(err):
			c.refused.add(dir, "", "%v", err)
		case err != nil:
			return nil, nil, fmt.Errorf("listing %s: %w", dir, err)
		}
		for _, name := range names {
			if err := c.take(name); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := c.refused.err(); err != nil {
		return nil, nil, err
	}
	return c.contents, c.leftOut.violations, nil
}

type contentsReader struct {
	reader   reader
	decoder  *decoder
	contents map[string][]byte
	refused  findings
	leftOut  findings
}

// take reads the next file. The error is that of one that could not be read.
func (c *contentsReader) take(name string) error {
	content, err := c.reader.read(name)
	if isFileError(err) {
		c.refused.add(name, "", "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	documents, err := c.decoder.decode(content)
	switch {
	case isBound(err), errors.Is(err, errAmbiguousKeys):
		c.refused.add(name, "", "%v", err)
		return nil
	case err != nil:
		c.leftOut.add(name, "", "%v", err)
		return nil
	case len(documents) > 1:
		c.leftOut.add(name, "", "all documents but the first one")
	}
	c.contents[name] = content
	return nil
}

// isBound reports whether content was refused by the decoder because it is too large.
func isBound(err error) bool {
	return slices.ContainsFunc([]error{errTooManyDocuments, errTooManyNodes, errTooHeavy, errTooDeep},
		func(bound error) bool { return errors.Is(err, bound) })
}

// list lists the paths of the files in a directory, in lexical order, and not the
// directories in it.
func (r *reader) list(dir string) ([]string, error) {
	entries, err := r.entries(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		if !entry.IsDir() {
			paths = append(paths, path.Join(dir, entry.Name()))
		}
	}
	return paths, nil
}
