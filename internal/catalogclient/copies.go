package catalogclient

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/clusterextensions/operator-controller/internal/atomicfile"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

const (
	// copyFormat changes whenever older copies can no longer be read right. Those of
	// format 2 may have texts beyond the bounds.
	copyFormat = 3
	copySuffix = ".index"
	tempPrefix = ".index-"
	// copyBytesPerKeptByte bounds copies. Those of published catalogs are about as
	// large as the index in memory. A name that comes up often is there as often, and
	// may be escaped in JSON; of what is larger then, there is no copy.
	copyBytesPerKeptByte = 2
)

// MaxCopiesBytes is what all copies may take on disk by default, in bytes.
const MaxCopiesBytes = defaultAllKeptBytes * copyBytesPerKeptByte

var errDamaged = errors.New("the copy is damaged")

// copies keeps one file per catalog with its last good index: the SHA-256 of
// the rest in hexadecimal, a line of copyHeader, and a copiedEntry per line. Files
// are named after the hash of the catalog's name and replaced by renaming.
type copies struct {
	// dir is the folder of the files; empty means that nothing is kept.
	dir string
	// limit is the size of the largest file, and all that of all of them, in bytes.
	limit, all int64

	// writing makes writers exclude each other, so that all of them are within the
	// bound.
	writing sync.Mutex
}

type copyHeader struct {
	Format   int    `json:"format"`
	Catalog  string `json:"catalog"`
	Digest   string `json:"digest"`
	Packages int    `json:"packages"`
}

// copiedEntry is an entry in a copy, with the facts about bundles apart: what
// bundles share is there once.
type copiedEntry struct {
	entry

	Facts []*resolve.Facts `json:"facts,omitempty"`
	// Bundles has for each bundle which of Facts are its own, from 1, and 0 for
	// none. It is empty if no bundle has any.
	Bundles []int `json:"bundles,omitempty"`
}

func newCopiedEntry(e *entry) copiedEntry {
	copied := copiedEntry{entry: *e}
	numbers := map[*resolve.Facts]int{}
	for i, bundle := range e.Package.Bundles {
		if bundle.Facts == nil {
			continue
		}
		if numbers[bundle.Facts] == 0 {
			copied.Facts = append(copied.Facts, bundle.Facts)
			numbers[bundle.Facts] = len(copied.Facts)
		}
		if copied.Bundles == nil {
			copied.Bundles = make([]int, len(e.Package.Bundles))
		}
		copied.Bundles[i] = numbers[bundle.Facts]
	}
	return copied
}

// restore returns the entry that was copied.
func (c copiedEntry) restore() (entry, error) {
	bundles := c.Package.Bundles
	if len(c.Bundles) > len(bundles) {
		return entry{}, errDamaged
	}
	for _, facts := range c.Facts {
		if facts == nil || slices.Contains(facts.Properties, nil) {
			return entry{}, errDamaged
		}
	}
	for i, number := range c.Bundles {
		if number < 0 || number > len(c.Facts) {
			return entry{}, errDamaged
		}
		if number > 0 {
			bundles[i].Facts = c.Facts[number-1]
		}
	}
	return c.entry, nil
}

func (c *copies) path(catalog string) string {
	sum := sha256.Sum256([]byte(catalog))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+copySuffix)
}

// load returns the indexes of all good copies by catalog. It removes damaged
// ones and what an interrupted write left, and touches no other file.
func (c *copies) load() (map[string]*index, error) {
	if c.dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder for copies of catalogs: %w", err)
	}
	if err := atomicfile.Clear(c.dir, tempPrefix); err != nil {
		return nil, fmt.Errorf("removing unfinished copies of catalogs: %w", err)
	}
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, fmt.Errorf("reading copies of catalogs: %w", err)
	}
	loaded := map[string]*index{}
	for _, file := range files {
		if !file.Type().IsRegular() || !strings.HasSuffix(file.Name(), copySuffix) {
			continue
		}
		if err := c.loadFile(filepath.Join(c.dir, file.Name()), loaded); err != nil {
			return nil, fmt.Errorf("reading copies of catalogs: %w", err)
		}
	}
	return loaded, nil
}

// loadFile adds the index at path to loaded, or removes the file.
func (c *copies) loadFile(path string, loaded map[string]*index) error {
	header, idx, err := readCopy(path, c.limit)
	if err == nil && c.path(header.Catalog) != path {
		err = errDamaged
	}
	if err != nil {
		return os.Remove(path)
	}
	loaded[header.Catalog] = idx
	return nil
}

func readCopy(path string, limit int64) (copyHeader, *index, error) {
	file, err := os.Open(path)
	if err != nil {
		return copyHeader{}, nil, err
	}
	defer func() { _ = file.Close() }()
	src := bufio.NewReader(io.LimitReader(file, limit))
	want := make([]byte, hex.EncodedLen(sha256.Size)+1)
	if _, err := io.ReadFull(src, want); err != nil {
		return copyHeader{}, nil, err
	}
	sum := sha256.New()
	header, idx, err := decodeCopy(io.TeeReader(src, sum))
	if err == nil && string(want) != checksum(sum) {
		err = errDamaged
	}
	return header, idx, err
}

func decodeCopy(r io.Reader) (copyHeader, *index, error) {
	dec := json.NewDecoder(r)
	var header copyHeader
	if err := dec.Decode(&header); err != nil {
		return header, nil, err
	}
	if header.Format != copyFormat {
		return header, nil, errDamaged
	}
	packages := map[string]*entry{}
	texts := newBuilder(Limits{})
	for {
		var copied copiedEntry
		err := dec.Decode(&copied)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return header, nil, err
		}
		e, err := copied.restore()
		if err != nil {
			return header, nil, err
		}
		e.Package = texts.keepPackage(e.Package)
		packages[e.Package.Name] = &e
	}
	if len(packages) != header.Packages {
		return header, nil, errDamaged
	}
	return header, &index{digest: header.Digest, packages: packages, kept: texts.kept}, nil
}

func checksum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) + "\n" }

// write copies idx to a temporary file and returns its path. The error may be an
// *fbc.LimitError.
func (c *copies) write(catalog string, idx *index) (string, error) {
	if c.dir == "" {
		return "", nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	limit, err := c.left()
	if err != nil {
		return "", fmt.Errorf("copying the index of catalog %q: %w", catalog, err)
	}
	written, err := atomicfile.Create(c.dir, tempPrefix, func(file *os.File) error {
		return encodeCopy(file, catalog, idx, min(limit, c.limit))
	})
	if err != nil {
		return "", fmt.Errorf("copying the index of catalog %q: %w", catalog, err)
	}
	return written, nil
}

// left is how much larger the files may be in all.
func (c *copies) left() (int64, error) {
	files, err := os.ReadDir(c.dir)
	if err != nil {
		return 0, err
	}
	left := c.all
	for _, file := range files {
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return 0, err
		}
		left -= info.Size()
	}
	return left, nil
}

// boundedWriter fails beyond its limit.
type boundedWriter struct {
	dst         io.Writer
	left, limit int64
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, &fbc.LimitError{What: "bytes of a copy", Limit: w.limit}
	}
	return w.dst.Write(p)
}

// encodeCopy writes a copy of at most limit bytes.
func encodeCopy(file *os.File, catalog string, idx *index, limit int64) error {
	limit -= int64(len(checksum(sha256.New())))
	sum := sha256.New()
	// The place of the checksum is filled when it is known.
	if _, err := file.WriteString(checksum(sum)); err != nil {
		return err
	}
	out := bufio.NewWriter(&boundedWriter{dst: file, left: limit, limit: limit})
	enc := json.NewEncoder(io.MultiWriter(out, sum))
	// Values of properties come back byte for byte only without escaping.
	enc.SetEscapeHTML(false)
	header := copyHeader{Format: copyFormat, Catalog: catalog, Digest: idx.digest, Packages: len(idx.packages)}
	if err := enc.Encode(header); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(idx.packages)) {
		if err := enc.Encode(newCopiedEntry(idx.packages[name])); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(checksum(sum)), 0)
	return err
}

// publish puts a written file in the place of the catalog's copy.
func (c *copies) publish(written, catalog string) error {
	if written == "" {
		return nil
	}
	if err := atomicfile.Rename(written, c.path(catalog)); err != nil {
		return fmt.Errorf("copying the index of catalog %q: %w", catalog, err)
	}
	return nil
}

// drop removes a written file that is not wanted. What stays is removed at the
// next start.
func (c *copies) drop(written string) {
	if written != "" {
		_ = os.Remove(written)
	}
}

func (c *copies) remove(catalog string) error {
	if c.dir == "" {
		return nil
	}
	if err := os.Remove(c.path(catalog)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the copy of catalog %q: %w", catalog, err)
	}
	return nil
}
