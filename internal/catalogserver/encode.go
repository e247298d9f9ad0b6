package catalogserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/joelanford/ignore"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// ignoreFile names the files whose gitignore patterns exclude files of a catalog.
const ignoreFile = ".indexignore"

// ErrEmptyCatalog says that the files of a catalog hold no object.
var ErrEmptyCatalog = errors.New("the catalog has no objects")

// FileError says that a file of a catalog cannot be used.
type FileError struct {
	// Path is the file, relative to the catalog's folder.
	Path string
	// Err is the cause; it names the object where there is one.
	Err error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// encode writes every object of the catalog in root to w, each as one line of
// JSON with sorted keys, in the order of the paths of the files. It returns the
// number of objects, which is at least one.
//
// The error is a *FileError when the catalog is at fault, ErrEmptyCatalog, an
// error of w, or that of ctx.
func encode(ctx context.Context, w io.Writer, root fs.FS, limits Limits) (int, error) {
	ignored, err := ignore.NewMatcher(root, ignoreFile)
	if err != nil {
		return 0, fmt.Errorf("reading %s files: %w", ignoreFile, err)
	}
	e := encoder{out: newLineEncoder(w), root: root, limits: limits}
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return &FileError{Path: path, Err: err}
		case d.IsDir() || d.Name() == ignoreFile || ignored.Match(path, false):
			return nil
		}
		return e.file(ctx, path, d)
	})
	if err == nil && e.objects == 0 {
		err = ErrEmptyCatalog
	}
	return e.objects, err
}

// encoder is the state of one encode.
type encoder struct {
	out            *json.Encoder
	root           fs.FS
	limits         Limits
	files, objects int
}

func newLineEncoder(w io.Writer) *json.Encoder {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out
}

func (e *encoder) file(ctx context.Context, path string, d fs.DirEntry) error {
	e.files++
	if e.files > e.limits.Files {
		return &FileError{Path: path, Err: &fbc.LimitError{What: "files", Limit: int64(e.limits.Files)}}
	}
	if !d.Type().IsRegular() {
		return &FileError{Path: path, Err: errors.New("not a regular file")}
	}
	file, err := e.root.Open(path)
	if err != nil {
		return &FileError{Path: path, Err: err}
	}
	defer file.Close()
	dec := fbc.NewDecoder(file, e.limits.Content)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := dec.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &FileError{Path: path, Err: err}
		}
		if err := e.object(o); err != nil {
			return err
		}
	}
}

// object writes o in canonical form. Numbers stay as they are written.
func (e *encoder) object(o fbc.Object) error {
	dec := json.NewDecoder(bytes.NewReader(o.JSON))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return err
	}
	if len(fields) == 0 {
		return nil
	}
	e.objects++
	return e.out.Encode(fields)
}
