package atomicfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Replace makes data the content of the file at path. The name of the file that it is
// written to first begins with prefix.
func Replace(path, prefix string, data []byte) error {
	file, err := Create(filepath.Dir(path), prefix, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return Rename(file, path)
}

// Create makes a file in dir with a new name that begins with prefix, and returns its
// path. Nothing stays of it if fill fails, unless the process is killed: see [Clear].
func Create(dir, prefix string, fill func(*os.File) error) (string, error) {
	file, err := os.CreateTemp(dir, prefix)
	if err != nil {
		return "", err
	}
	err = fill(file)
	if err == nil {
		err = file.Sync()
	}
	if err = cmp.Or(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// Rename puts a file in the place of another in the same folder, or removes it if that
// fails. Once it returns, the change lasts through a crash.
func Rename(file, path string) error {
	if err := os.Rename(file, path); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes changes of names in a folder last through a crash.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}

// Clear removes what a killed process left in dir: files whose names begin with prefix.
func Clear(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), prefix) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
