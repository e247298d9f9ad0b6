package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

const (
	manifestsDir    = "manifests"
	annotationsFile = "metadata/annotations.yaml"
	propertiesFile  = "metadata/properties.yaml"
)

// reader reads the files of one bundle within bounds.
type reader struct {
	files     fs.FS
	remaining int64
}

// fileError is about a file that is there but not acceptable, as opposed to one
// that could not be read.
type fileError struct {
	reason string
}

func (e *fileError) Error() string { return e.reason }

func isFileError(err error) bool {
	return errors.As(err, new(*fileError))
}

// manifests lists the paths of all manifests in lexical order.
func (r *reader) manifests() ([]string, error) {
	entries, err := r.entries(manifestsDir)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(entries))
	for i, entry := range entries {
		paths[i] = path.Join(manifestsDir, entry.Name())
	}
	return paths, nil
}

// entries are those of a directory, in lexical order.
func (r *reader) entries(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.files, dir)
	if err == nil && len(entries) > MaxManifests {
		err = &fileError{fmt.Sprintf("more than %d files", MaxManifests)}
	}
	return entries, err
}

// read returns the content of a regular file. Links are refused here as well,
// although whoever unpacked the bundle should have done so.
func (r *reader) read(name string) ([]byte, error) {
	file, err := r.open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, min(MaxFileBytes, r.remaining)+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	size := int64(len(content))
	switch {
	case size > MaxFileBytes:
		return nil, &fileError{fmt.Sprintf("larger than %d bytes", MaxFileBytes)}
	case size > r.remaining:
		return nil, &fileError{fmt.Sprintf("all files together are larger than %d bytes", MaxTotalBytes)}
	}
	r.remaining -= size
	return content, nil
}

func (r *reader) open(name string) (fs.File, error) {
	info, err := fs.Lstat(r.files, name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fileError{"a directory where a file should be"}
	case !info.Mode().IsRegular():
		return nil, &fileError{"a link or a device where a file should be"}
	}
	return r.files.Open(name)
}
