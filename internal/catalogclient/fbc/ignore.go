package fbc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// ignoreFile names the files whose gitignore patterns exclude files of a folder.
const ignoreFile = ".indexignore"

var errNotRegular = errors.New("not a regular file")

// ignored tells which files of a folder are excluded. A pattern holds below the
// folder of its file, and of several that match, the last one counts: files in
// the order of their paths, and patterns as they stand there.
type ignored struct {
	limits   WalkLimits
	patterns []pattern
	// size is that of all files with patterns in bytes.
	size int
	// cost is what matching a path takes for each of its bytes, and spent what it
	// has taken so far: the bytes of all patterns and of the folders they hold for.
	cost, spent int64
}

// readIgnored walks all of root and reads its .indexignore files. The error is a
// *FileError, that of ctx, or says that a folder cannot be read.
func readIgnored(ctx context.Context, root fs.FS, limits WalkLimits) (*ignored, error) {
	i := &ignored{limits: limits}
	entries := 0
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading %s files: %w", ignoreFile, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		entries++
		if err := limits.admit(entries, name); err != nil {
			return &FileError{Path: name, Err: err}
		}
		if d.IsDir() || d.Name() != ignoreFile {
			return nil
		}
		if err := i.read(root, name, d); err != nil {
			return &FileError{Path: name, Err: err}
		}
		return nil
	})
	return i, err
}

// admit returns an error unless the walk may go on with its nth entry.
func (l WalkLimits) admit(nth int, name string) error {
	if nth > l.Entries {
		return &LimitError{What: "files and folders", Limit: int64(l.Entries)}
	}
	if strings.Count(name, "/")+1 > l.Depth {
		return &LimitError{What: "levels of folders", Limit: int64(l.Depth)}
	}
	return nil
}

// read adds the patterns of one file.
func (i *ignored) read(root fs.FS, name string, d fs.DirEntry) error {
	if !d.Type().IsRegular() {
		return errNotRegular
	}
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	left := i.limits.IgnoreBytes - i.size
	text, err := io.ReadAll(io.LimitReader(file, int64(left)+1))
	if err != nil {
		return err
	}
	if len(text) > left {
		return &LimitError{What: "bytes of " + ignoreFile + " files", Limit: int64(i.limits.IgnoreBytes)}
	}
	i.size += len(text)
	for line := range strings.Lines(string(text)) {
		if err := i.add(strings.TrimSpace(line), path.Dir(name)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a line of a file in dir.
func (i *ignored) add(line, dir string) error {
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	if len(line) > i.limits.PatternBytes {
		return &LimitError{What: "bytes of a pattern", Limit: int64(i.limits.PatternBytes)}
	}
	if len(i.patterns) >= i.limits.Patterns {
		return &LimitError{What: "patterns of " + ignoreFile + " files", Limit: int64(i.limits.Patterns)}
	}
	i.patterns = append(i.patterns, parsePattern(line, dir))
	i.cost += int64(len(line) + len(dir))
	return nil
}

// match reports whether the file is excluded. The error is a *LimitError.
func (i *ignored) match(name string) (bool, error) {
	if i.spent += i.cost * int64(len(name)); i.spent > i.limits.Matching {
		return false, &LimitError{What: "bytes of patterns times bytes of paths", Limit: i.limits.Matching}
	}
	names := strings.Split(name, "/")
	for _, pattern := range slices.Backward(i.patterns) {
		if pattern.matches(names) {
			return !pattern.keeps, nil
		}
	}
	return false, nil
}
