package catalogserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// ErrNoContent says that the store has no content of a catalog.
var ErrNoContent = errors.New("no content")

// NameError says that a text is not the name of a catalog.
type NameError struct {
	Name string
	// Detail is what is wrong with it.
	Detail string
}

func (e *NameError) Error() string { return "invalid catalog name: " + e.Detail }

// checkName returns a *NameError unless name is an RFC 1123 subdomain. Such a
// name is never a path: it has no separator and does not begin with a dot.
func checkName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return &NameError{Name: name, Detail: strings.Join(problems, "; ")}
	}
	return nil
}

// Store holds the content of catalogs on disk, each in a folder of its own:
// immutable folders with content, and a record that names the current one and
// is replaced in one step. It is safe for concurrent use, and reading never
// waits for content being stored.
type Store struct {
	dir    string
	limits Limits
	work   *diskspace.Space

	// mu guards records. It is held for as long as content is opened, so that what is
	// opened is what the catalog has.
	mu      sync.RWMutex
	records map[string]Record
	readers readers
	// commit makes changes of records exclude each other. It guards rooms, which are
	// what catalogs take on disk.
	commit sync.Mutex
	space  *diskspace.Space
	rooms  map[string]*diskspace.Holding
}

// StoreConfig is what a Store is made from.
type StoreConfig struct {
	// Dir is the folder of the store. It is created when missing, and belongs
	// to one Store: what is in it and not current content is removed.
	Dir string
	// Limits bounds what one catalog may take.
	Limits Limits
	// Space is what the content of all catalogs may take on disk, and Work what all
	// content may that is being stored. Nil means without bound.
	Space, Work *diskspace.Space
}

// OpenStore returns the store in cfg.Dir with the content that it holds, of
// which every byte is verified. Damaged content and what an interrupted process
// left behind is removed.
func OpenStore(cfg StoreConfig) (*Store, error) {
	if cfg.Dir == "" {
		return nil, errors.New("a folder for the catalogs is required")
	}
	unbounded := diskspace.New(diskspace.Config{Bytes: math.MaxInt64})
	s := &Store{
		dir: cfg.Dir, limits: cfg.Limits.withDefaults(), work: cmp.Or(cfg.Work, unbounded),
		records: map[string]Record{}, space: cmp.Or(cfg.Space, unbounded), rooms: map[string]*diskspace.Holding{},
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("opening the store of catalogs: %w", err)
	}
	return s, nil
}

func (s *Store) load() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || checkName(entry.Name()) != nil {
			continue
		}
		folder := s.folder(entry.Name())
		rec, err := readRecord(folder)
		if err != nil {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
			continue
		}
		if err := sweep(folder, rec.Folder); err != nil {
			return err
		}
		s.records[entry.Name()] = rec
		s.room(entry.Name()).Adopt(rec.sizeOnDisk())
	}
	return nil
}

// room is what a catalog takes on disk.
func (s *Store) room(name string) *diskspace.Holding {
	if s.rooms[name] == nil {
		s.rooms[name] = s.space.Hold()
	}
	return s.rooms[name]
}

// sweep removes all of a catalog's folder but its record and current content.
func sweep(folder, current string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != recordFile && name != current {
			if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) folder(name string) string { return filepath.Join(s.dir, name) }

// Record returns what the store holds of a catalog.
func (s *Store) Record(name string) (Record, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	rec, ok := s.records[name]
	return rec, ok
}

// Names returns the names of the catalogs with content, sorted.
func (s *Store) Names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.records))
}

// Open returns the content that a catalog has now. The error is a *NameError,
// ErrNoContent, or one of the file system.
func (s *Store) Open(name string) (*Snapshot, error) {
	return s.open(name, func(Record) coding { return identity })
}

// open is Open, and opens the content in the coding that is wanted of it, too.
func (s *Store) open(name string, wanted func(Record) coding) (*Snapshot, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	rec, ok := s.records[name]
	if !ok {
		return nil, ErrNoContent
	}
	snapshot, err := openSnapshot(s.folder(name), rec, wanted(rec))
	if err != nil {
		return nil, err
	}
	snapshot.key, snapshot.readers = rec.key(name), &s.readers
	s.readers.enter(snapshot)
	return snapshot, nil
}

// Put checks the catalog in files and makes it the content of the catalog with
// that name. Until then, and on error, the previous content stays. The error is
// a *NameError, one of encode, an *fbc.LimitError, a *diskspace.FullError, or one of
// the file system.
func (s *Store) Put(ctx context.Context, name string, origin Origin, files fs.FS) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder(name), 0o700); err != nil {
		return err
	}
	// The folder is never used again, so that content in it never changes.
	folder, err := os.MkdirTemp(s.folder(name), folderPattern(origin.Canonical))
	if err != nil {
		return err
	}
	work := s.work.Hold()
	defer work.Release()
	rec, err := writeContent(ctx, folder, files, s.limits, work)
	if err == nil {
		rec.Origin = origin
		rec.StoredAt = origin.CheckedAt.Truncate(time.Second)
		err = s.publish(name, rec)
	}
	if err != nil {
		// What stays is removed at the next start.
		_ = os.RemoveAll(folder)
	}
	return err
}

// folderPattern gives the folders of content names that tell contents apart.
func folderPattern(canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	return hex.EncodeToString(sum[:8]) + "-*"
}

// Confirm records that the content of a catalog is what its source stands for,
// at the time in origin. The error is ErrNoContent, or one of the file system.
func (s *Store) Confirm(name string, origin Origin) error {
	rec, ok := s.Record(name)
	if !ok || rec.Canonical != origin.Canonical {
		return ErrNoContent
	}
	rec.Origin = origin
	return s.publish(name, rec)
}

// publish makes rec the record of a catalog and removes the content that it
// replaces. Who reads that finishes on it, if it still has room beside the content of
// all catalogs: it takes none from those, and nobody waits for its readers.
func (s *Store) publish(name string, rec Record) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	old, replaced := s.Record(name)
	err := s.fit(name, &rec)
	if err == nil {
		err = writeRecord(s.folder(name), rec)
	}
	switch {
	case err != nil && replaced:
		s.room(name).Adopt(old.sizeOnDisk())
		return err
	case err != nil:
		s.giveBack(name)
		return err
	}
	s.mu.Lock()
	s.records[name] = rec
	s.mu.Unlock()
	if replaced && old.Folder != rec.Folder {
		s.readers.part(old.key(name), old.sizeOnDisk())
		// The content is replaced whether or not the old one can be removed,
		// and what stays is removed at the next start.
		_ = os.RemoveAll(filepath.Join(s.folder(name), old.Folder))
	}
	s.readers.fit(s.space.Unused())
	return nil
}

// fit makes room for content, without the copies in codings and the summary if there is no
// space for them.
func (s *Store) fit(name string, rec *Record) error {
	room := s.room(name)
	err := room.Resize(rec.sizeOnDisk())
	if _, full := errors.AsType[*diskspace.FullError](err); !full {
		return err
	}
	for as := range rec.Encoded {
		if err := os.Remove(filepath.Join(s.folder(name), rec.Folder, as.file())); err != nil {
			return err
		}
	}
	rec.Encoded = nil
	err = room.Resize(rec.sizeOnDisk())
	if _, full := errors.AsType[*diskspace.FullError](err); !full || rec.SummarySHA256 == "" {
		return err
	}
	if err := os.Remove(filepath.Join(s.folder(name), rec.Folder, summaryFile)); err != nil {
		return err
	}
	rec.SummaryBytes, rec.SummarySHA256 = 0, ""
	return room.Resize(rec.sizeOnDisk())
}

func (s *Store) giveBack(name string) {
	if room := s.rooms[name]; room != nil {
		room.Release()
		delete(s.rooms, name)
	}
}

// Delete removes the content of a catalog. It is served no longer even when
// the error says that something of it is still on disk.
func (s *Store) Delete(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	s.commit.Lock()
	defer s.commit.Unlock()
	s.mu.Lock()
	old, ok := s.records[name]
	delete(s.records, name)
	s.mu.Unlock()
	if ok {
		s.readers.part(old.key(name), old.sizeOnDisk())
	}
	if err := os.RemoveAll(s.folder(name)); err != nil {
		return fmt.Errorf("removing the content of catalog %q: %w", name, err)
	}
	s.giveBack(name)
	return nil
}
