package catalogserver

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Snapshot is one version of a catalog's content. It stays readable, content
// and index alike, when the catalog gets other content or is deleted, unless the
// space on disk is needed: then reading fails with os.ErrClosed. It is for one reader at
// a time, who closes it.
type Snapshot struct {
	// Record describes the content.
	Record Record

	content, index *os.File
	// summary is nil if there is none.
	summary *os.File
	// encoded is the content in the coding that it was opened for; nil if that is not
	// stored.
	encoded *os.File

	key      contentKey
	readers  *readers
	closing  sync.Once
	closeErr error
}

// openSnapshot opens the content that rec describes, in the folder of a catalog, and
// its copy in that coding if there is one. It is no reader yet.
func openSnapshot(folder string, rec Record, as coding) (*Snapshot, error) {
	s := &Snapshot{Record: rec}
	var err error
	s.content, err = openSized(filepath.Join(folder, rec.Folder, contentFile), rec.Bytes)
	if err == nil {
		s.index, err = openSized(filepath.Join(folder, rec.Folder, indexFile), rec.IndexBytes)
	}
	if rec.SummarySHA256 != "" && err == nil {
		s.summary, err = openSized(filepath.Join(folder, rec.Folder, summaryFile), rec.SummaryBytes)
	}
	if stored, ok := rec.Encoded[as]; ok && err == nil {
		s.encoded, err = openSized(filepath.Join(folder, rec.Folder, as.file()), stored.Bytes)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
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
	return Selection{Content: &lineReader{lines: found, content: s.content}, Bytes: found.bytes, Digest: found.digest}, nil
}

// Close ends the use of s.
func (s *Snapshot) Close() error {
	err := s.close()
	s.readers.leave(s)
	return err
}

// close closes the files, whoever reads them. It may be called more than once.
func (s *Snapshot) close() error {
	s.closing.Do(func() {
		var errs []error
		for _, file := range []*os.File{s.content, s.index, s.summary, s.encoded} {
			if file != nil {
				errs = append(errs, file.Close())
			}
		}
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}
