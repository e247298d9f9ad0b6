package catalogserver

import (
	"errors"
	"os"
	"path/filepath"
)

// Snapshot is one version of a catalog's content. It stays readable, content
// and index alike, when the catalog gets other content or is deleted. It is for
// one reader at a time, who closes it.
type Snapshot struct {
	// Record describes the content.
	Record Record

	content, index *os.File
}

// openSnapshot opens the content that rec describes, in the folder of a catalog.
func openSnapshot(folder string, rec Record) (*Snapshot, error) {
	content, err := openSized(filepath.Join(folder, rec.Folder, contentFile), rec.Bytes)
	if err != nil {
		return nil, err
	}
	index, err := openSized(filepath.Join(folder, rec.Folder, indexFile), rec.IndexBytes)
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return &Snapshot{Record: rec, content: content, index: index}, nil
}

// openSized opens a file, which is damaged when it does not have that size.
func openSized(path string, size int64) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() != size {
		err = errDamaged
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// All returns the whole content.
func (s *Snapshot) All() Selection {
	return Selection{Content: s.content, Bytes: s.Record.Bytes, Digest: s.Record.SHA256}
}

// Select returns the objects that q is for. The error is one of the file
// system, or says that the index is damaged.
func (s *Snapshot) Select(q Query) (Selection, error) {
	if q == (Query{}) {
		return s.All(), nil
	}
	x, err := openIndex(s.index, s.Record.IndexBytes)
	if err != nil {
		return Selection{}, err
	}
	found, err := x.selectLines(q, s.Record.Bytes)
	if err != nil {
		return Selection{}, err
	}
	return Selection{Content: found.reader(s.content), Bytes: found.bytes, Digest: found.digest}, nil
}

// Close ends the use of s.
func (s *Snapshot) Close() error { return errors.Join(s.content.Close(), s.index.Close()) }
