package fbc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/joelanford/ignore"
)

// ignoreFile names the files whose gitignore patterns exclude files of a folder.
const ignoreFile = ".indexignore"

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
	// Files bounds the number of files; zero stands for the default.
	Files int
}

// Objects yields the objects of the folder in the order of the paths of their
// files, each valid until the next one. An error is a *FileError, beside an
// object that has at least the path, unless the .indexignore files cannot be
// read. Reading goes on after it: behind the object if there is an *ObjectError
// in it, else with the next file.
func (f Folder) Objects() iter.Seq2[FileObject, error] {
	return func(yield func(FileObject, error) bool) {
		ignored, err := ignore.NewMatcher(f.Root, ignoreFile)
		if err != nil {
			yield(FileObject{}, fmt.Errorf("reading %s files: %w", ignoreFile, err))
			return
		}
		files := 0
		// What goes wrong is yielded; walk ends early only because it is told to.
		_ = fs.WalkDir(f.Root, ".", func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
			case d.IsDir() || d.Name() == ignoreFile || ignored.Match(path, false):
				return nil
			default:
				files++
				err = f.admit(files, d)
			}
			if err != nil {
				return stopUnless(yield(fail(path, err)) && files <= f.maxFiles())
			}
			return stopUnless(f.file(path, yield))
		})
	}
}

func (f Folder) maxFiles() int {
	if f.Files == 0 {
		return defaultFiles
	}
	return f.Files
}

// admit returns an error unless the file, the nth one, may be read.
func (f Folder) admit(nth int, d fs.DirEntry) error {
	if nth > f.maxFiles() {
		return &LimitError{What: "files", Limit: int64(f.maxFiles())}
	}
	if !d.Type().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}

// file yields the objects of one file. It returns false when no more are wanted.
func (f Folder) file(path string, yield func(FileObject, error) bool) bool {
	file, err := f.Root.Open(path)
	if err != nil {
		return yield(fail(path, err))
	}
	defer file.Close()
	dec := NewDecoder(file, f.Limits)
	for {
		o, err := dec.Next()
		if errors.Is(err, io.EOF) {
			return true
		}
		found := FileObject{Path: path, Object: o}
		if err == nil {
			if !yield(found, nil) {
				return false
			}
			continue
		}
		if !yield(found, &FileError{Path: path, Err: err}) {
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
