package fbc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
)

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

// FileObject is an object of a catalog that is a folder.
type FileObject struct {
	// Path is the file of the object, relative to the catalog's folder.
	Path string
	Object
}

// Folder is a catalog as a folder of files. All of them belong to it, whatever
// their names, but those that an .indexignore file excludes.
type Folder struct {
	Root fs.FS
	// Limits bounds every file.
	Limits Limits
	// Walk bounds the way through the folder.
	Walk WalkLimits
}

// Objects yields the objects of the folder in the order of the paths of their
// files, each valid until the next one. An error is a *FileError, beside an
// object that has at least the path, unless a folder cannot be read or ctx is
// done. Reading goes on after it, behind the object if there is an *ObjectError
// in it, else with the next file; it ends if ctx is done, or if a bound of the
// walk or an .indexignore file leaves open which files belong to the catalog.
func (f Folder) Objects(ctx context.Context) iter.Seq2[FileObject, error] {
	return func(yield func(FileObject, error) bool) {
		walk := walk{Folder: f, ctx: ctx, yield: yield}
		walk.Walk = f.Walk.withDefaults()
		var err error
		if walk.ignored, err = readIgnored(ctx, f.Root, walk.Walk); err != nil {
			_ = walk.end(err) // there is no more to skip
			return
		}
		// What goes wrong is yielded; walk ends early only because it is told to.
		_ = fs.WalkDir(f.Root, ".", walk.entry)
	}
}

// walk is one way through a folder.
type walk struct {
	Folder

	ctx     context.Context //nolint:containedctx // that of one call
	yield   func(FileObject, error) bool
	ignored *ignored
	files   int
}

// end yields the last error.
func (w *walk) end(err error) error {
	path := ""
	if inFile, ok := errors.AsType[*FileError](err); ok {
		path = inFile.Path
	}
	w.yield(FileObject{Path: path}, err)
	return fs.SkipAll
}

// entry takes the next file or folder. The error only says that the walk is over.
func (w *walk) entry(path string, d fs.DirEntry, err error) error {
	if ctxErr := w.ctx.Err(); ctxErr != nil {
		return w.end(ctxErr)
	}
	if err != nil {
		return stopUnless(w.yield(fail(path, err)))
	}
	if d.IsDir() || d.Name() == ignoreFile {
		return nil
	}
	ignored, err := w.ignored.match(path)
	if err != nil {
		return w.end(&FileError{Path: path, Err: err})
	}
	if ignored {
		return nil
	}
	if w.files++; w.files > w.Walk.Files {
		return w.end(&FileError{Path: path, Err: &LimitError{What: "files", Limit: int64(w.Walk.Files)}})
	}
	if !d.Type().IsRegular() {
		return stopUnless(w.yield(fail(path, errNotRegular)))
	}
	return stopUnless(w.file(path))
}

// file yields the objects of one file. It returns false when no more are wanted.
func (w *walk) file(path string) bool {
	file, err := w.Root.Open(path)
	if err != nil {
		return w.yield(fail(path, err))
	}
	defer file.Close()
	dec := NewDecoder(file, w.Limits)
	for {
		if err := w.ctx.Err(); err != nil {
			_ = w.end(err)
			return false
		}
		o, err := dec.Next()
		if errors.Is(err, io.EOF) {
			return true
		}
		found := FileObject{Path: path, Object: o}
		if err == nil {
			if !w.yield(found, nil) {
				return false
			}
			continue
		}
		if !w.yield(found, &FileError{Path: path, Err: err}) {
			return false
		}
		if _, ok := errors.AsType[*ObjectError](err); !ok {
			return true
		}
	}
}

func fail(path string, err error) (FileObject, error) {
	return FileObject{Path: path}, &FileError{Path: path, Err: err}
}

func stopUnless(wanted bool) error {
	if wanted {
		return nil
	}
	return fs.SkipAll
}
