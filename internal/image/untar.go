package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// unpacker applies the layers of an image, bottom first, to a directory. It
// keeps what the filter selects; modes, owners, times and extended attributes
// of the archive are ignored, so that the tree can always be read and deleted.
type unpacker struct {
	root   *os.Root
	filter filter
	limits Limits
	take   func(bytes int64) error // asks for bytes on disk

	isChart bool   // the archive is that of a chart, see [unpacker.chartEntry]
	folder  string // the one that a chart is in, as soon as it is known

	expanded int64 // bytes decompressed so far
	entries  int   // headers read so far
	content  int64 // bytes written so far; replaced files count
	kept     int   // entries and whiteouts so far; replaced ones count

	layer  layerState
	buffer []byte // what is copied goes through it
}

// layerState is what one layer has done so far: a whiteout hides what lies
// below its layer, wherever in the layer it stands.
type layerState struct {
	written map[string]bool   // paths this layer has written, with their parents
	hidden  map[whiteout]bool // whiteouts already applied
}

func newUnpacker(root *os.Root, f filter, limits Limits, take func(int64) error) *unpacker {
	return &unpacker{root: root, filter: f, limits: limits, take: take, buffer: make([]byte, copySize)}
}

// apply unpacks one layer. An error that matches [ErrContent] holds only if r
// itself did not fail and its digest turns out right.
func (u *unpacker) apply(ctx context.Context, r io.Reader) error {
	u.layer = layerState{written: map[string]bool{}, hidden: map[whiteout]bool{}}
	plain, err := decompress(r)
	if err != nil {
		return layerError(err)
	}
	defer plain.Close()
	stream := &expandedReader{r: plain, u: u}
	archive := tar.NewReader(stream)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return layerError(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if u.entries++; u.entries > u.limits.Entries {
			return &LimitError{Bound: BoundEntries, Limit: int64(u.limits.Entries), Entry: header.Name}
		}
		if err := u.entry(header, archive); err != nil {
			return err
		}
	}
	// What follows the end of the archive is padding, but counts.
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return layerError(err)
	}
	return nil
}

// entry applies one entry of the archive.
func (u *unpacker) entry(header *tar.Header, body io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	for element := range strings.SplitSeq(header.Name, "/") {
		if element == ".." {
			return &EntryError{Entry: header.Name, Problem: `the name contains ".."`}
		}
	}
	name := cleanName(header.Name)
	if u.isChart {
		return u.chartEntry(header, name, body)
	}
	if strings.HasPrefix(path.Base(name), whiteoutPrefix) {
		return u.applyWhiteout(name)
	}
	switch {
	case u.filter.includes(name):
		return u.keep(header, name, body)
	case u.filter.above(name):
		return u.above(header, name)
	default:
		return nil
	}
}

// above applies an entry above the kept directories. Only directories can be
// there; anything else replaces what is below.
func (u *unpacker) above(header *tar.Header, name string) error {
	switch header.Typeflag {
	case tar.TypeDir:
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return &LinkError{Entry: name}
	default:
		if name == "." {
			return &EntryError{Entry: name, Problem: "the image root is not a directory"}
		}
		return diskError(u.root.RemoveAll(name))
	}
}

// keep applies an entry of the kept directories.
func (u *unpacker) keep(header *tar.Header, name string, body io.Reader) error {
	if strings.HasPrefix(header.Name, "/") {
		return &EntryError{Entry: header.Name, Problem: "the name is absolute"}
	}
	if err := u.checkName(name); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.mkdir(name)
	case tar.TypeReg:
		return u.write(header, name, body)
	case tar.TypeSymlink, tar.TypeLink:
		return &LinkError{Entry: name}
	default:
		return &EntryError{Entry: name, Problem: "neither a file nor a directory"}
	}
}

func (u *unpacker) checkName(name string) error {
	switch {
	case len(name) > u.limits.PathBytes:
		return &LimitError{Bound: BoundPathBytes, Limit: int64(u.limits.PathBytes), Entry: name}
	case strings.Count(name, "/")+1 > u.limits.PathDepth:
		return &LimitError{Bound: BoundPathDepth, Limit: int64(u.limits.PathDepth), Entry: name}
	case !utf8.ValidString(name):
		return &EntryError{Entry: name, Problem: "the name is not valid UTF-8"}
	default:
		return nil
	}
}

// write stores a file, which replaces what lower layers have under its name.
func (u *unpacker) write(header *tar.Header, name string, body io.Reader) error {
	switch {
	case u.layer.written[name]:
		return twice(name)
	case header.Size > u.limits.FileBytes:
		return &LimitError{Bound: BoundFileBytes, Limit: u.limits.FileBytes, Entry: name}
	case header.Size > u.limits.ContentBytes-u.content:
		return &LimitError{Bound: BoundContentBytes, Limit: u.limits.ContentBytes, Entry: name}
	}
	u.content += header.Size
	if err := u.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := u.count(name); err != nil {
		return err
	}
	if err := u.take(diskspace.Blocks(header.Size)); err != nil {
		return err
	}
	u.layer.written[name] = true
	if err := u.root.RemoveAll(name); err != nil {
		return diskError(err)
	}
	file, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return diskError(err)
	}
	_, err = copyThrough(u.buffer, file, body)
	if closeErr := file.Close(); err == nil && closeErr != nil {
		return diskError(closeErr)
	}
	return layerError(err)
}

// twice is the error for a second file of one name in a layer, or for a file
// and a directory: which of them counts differs between those who read them.
func twice(name string) error {
	return &EntryError{Entry: name, Problem: "the name occurs twice in its layer"}
}

// mkdir makes a directory and its parents. A file of lower layers that is in
// the way is replaced.
func (u *unpacker) mkdir(name string) error {
	if name == "." {
		return nil
	}
	if err := u.mkdir(path.Dir(name)); err != nil {
		return err
	}
	written := u.layer.written[name]
	u.layer.written[name] = true
	info, err := u.root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil && written:
		return twice(name)
	case err == nil:
		if err := u.root.Remove(name); err != nil {
			return diskError(err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return diskError(err)
	}
	if err := u.count(name); err != nil {
		return err
	}
	if err := u.take(diskspace.Blocks(0)); err != nil {
		return err
	}
	return diskError(u.root.Mkdir(name, dirMode))
}

// count notes that one more entry is kept, or one more whiteout applied.
func (u *unpacker) count(name string) error {
	if u.kept++; u.kept > u.limits.KeptEntries {
		return &LimitError{Bound: BoundKeptEntries, Limit: int64(u.limits.KeptEntries), Entry: name}
	}
	return nil
}

// expandedReader counts what a layer decompresses to.
type expandedReader struct {
	r io.Reader
	u *unpacker
}

func (e *expandedReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.u.expanded += int64(n)
	if e.u.expanded > e.u.limits.ExpandedBytes {
		return 0, &LimitError{Bound: BoundExpandedBytes, Limit: e.u.limits.ExpandedBytes}
	}
	return n, err
}

// layerError says of an error met while reading or storing a layer what it
// is: one of the disk and one that is already typed stay as they are, all
// others are the fault of the archive.
func layerError(err error) error {
	if err == nil || errors.Is(err, ErrContent) {
		return err
	}
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) {
		return diskError(err)
	}
	return &FormatError{Object: "layer", Err: err}
}

// diskError strips the path from an error of the file system: it names a
// temporary directory, which would make the message differ each time.
func diskError(err error) error {
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) {
		return &DiskError{Op: disk.Op, Err: disk.Err}
	}
	if link := (*os.LinkError)(nil); errors.As(err, &link) {
		return &DiskError{Op: link.Op, Err: link.Err}
	}
	return err
}
