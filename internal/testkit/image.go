package testkit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
)

// TarEntry is one entry of an archive. The size in the header is set from the
// body unless it is set already; a type of zero means a regular file.
type TarEntry struct {
	Header tar.Header
	Body   string
}

// File returns the entry of a regular file.
func File(name, body string) TarEntry {
	return TarEntry{Header: tar.Header{Name: name, Mode: 0o644}, Body: body}
}

// Dir returns the entry of a directory.
func Dir(name string) TarEntry {
	return TarEntry{Header: tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}}
}

// Symlink returns the entry of a symbolic link.
func Symlink(name, target string) TarEntry {
	return TarEntry{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}}
}

// Hardlink returns the entry of a hard link.
func Hardlink(name, target string) TarEntry {
	return TarEntry{Header: tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}}
}

// Tar returns an archive of the given entries, in that order.
func Tar(entries ...TarEntry) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, entry := range entries {
		header := entry.Header
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Size == 0 {
			header.Size = int64(len(entry.Body))
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("archiving %q: %w", header.Name, err)
		}
		if _, err := archive.Write([]byte(entry.Body)); err != nil {
			return nil, fmt.Errorf("archiving %q: %w", header.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("archiving: %w", err)
	}
	return buffer.Bytes(), nil
}

// TarFS returns an archive of all directories and regular files of a tree, in
// lexical order and without times.
func TarFS(files fs.FS) ([]byte, error) { return tarFS(files, "") }

// tarFS is [TarFS] with a prefix before each name.
func tarFS(files fs.FS, prefix string) ([]byte, error) {
	var entries []TarEntry
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case entry.IsDir():
			entries = append(entries, Dir(prefix+name+"/"))
			return nil
		}
		body, err := fs.ReadFile(files, name)
		entries = append(entries, File(prefix+name, string(body)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("archiving: %w", err)
	}
	return Tar(entries...)
}

// Gzip returns data compressed, the same way every time.
func Gzip(data []byte) []byte {
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	// Writing to memory cannot fail.
	_, _ = compressed.Write(data)
	_ = compressed.Close()
	return buffer.Bytes()
}
