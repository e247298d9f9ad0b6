package image

import (
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
)

// digestTree returns a digest over the names and the content of all files and
// directories.
func digestTree(tree fs.FS) (digest.Digest, error) {
	sum := digest.Canonical.Hash()
	buffer := make([]byte, copySize)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			fmt.Fprintf(sum, "dir %q\n", name)
			return nil
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%q is not a regular file", name)
		}
		return digestFile(sum, tree, name, buffer)
	})
	return digest.NewDigest(digest.Canonical, sum), err
}

func digestFile(sum hash.Hash, tree fs.FS, name string, buffer []byte) error {
	file, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	// The size keeps content from being read as the next entry.
	fmt.Fprintf(sum, "file %q %d\n", name, info.Size())
	_, err = copyThrough(buffer, sum, file)
	return err
}

// copySize is what is read at a time.
const copySize = 32 << 10

// copyThrough is [io.CopyBuffer] with the given buffer in any case. Files know ways
// to copy that take a new buffer each time, and images have many files.
func copyThrough(buffer []byte, to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer)
}
