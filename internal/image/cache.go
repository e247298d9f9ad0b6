package image

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// The layout of the cache:
//
//	sha256-<hex>-<selection>/       one tree; its existence means complete
//	    entry.json                  what it is, and the digest of the tree
//	    tree/                       the kept files
//	    approved/<hex>              one per accepting decision of a policy, the latest
//	tmp-<random>/                   being written or being deleted
const (
	tempPrefix   = "tmp-"
	recordFile   = "entry.json"
	treeDir      = "tree"
	approvalsDir = "approved"
)

// maxApprovals is how many decisions to accept an entry are kept: one for each reference
// to it, and again for each policy. Who changes references all the time is asked about
// the older ones again.
const maxApprovals = 16

// entryKey identifies a tree.
type entryKey struct {
	digest digest.Digest
	sel    Selection
}

// dir returns the directory of the entry. Its parts are a validated digest
// and a constant.
func (k entryKey) dir() string {
	return fmt.Sprintf("%s-%s-%s", k.digest.Algorithm(), k.digest.Encoded(), k.sel)
}

// parseEntryDir is the inverse of entryKey.dir.
func parseEntryDir(name string) (entryKey, bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return entryKey{}, false
	}
	d := digest.NewDigestFromEncoded(digest.Algorithm(parts[0]), parts[1])
	for _, sel := range []Selection{BundleContent, CatalogContent} {
		if parts[2] == sel.String() && d.Validate() == nil {
			return entryKey{digest: d, sel: sel}, true
		}
	}
	return entryKey{}, false
}

// record is the content of entry.json.
type record struct {
	Digest    digest.Digest `json:"digest"`
	Selection string        `json:"selection"`
	// Root is the directory of the catalog in the tree, "." for a bundle.
	Root string `json:"root"`
	// Tree is the digest over names and content of the tree.
	Tree digest.Digest `json:"tree"`
}

// cache keeps trees by digest below one directory. It is safe for concurrent use.
type cache struct {
	root *os.Root

	// entries are looked at and put in place by one at a time, each, which waits for
	// the disk and for nobody else.
	entries keyedLock

	mu       sync.Mutex
	leases   map[entryKey]int
	verified map[entryKey]bool // checked against their record since the start
	rooms    rooms
}

// openCache opens the cache in dir, makes it if needed, and deletes what an
// earlier process left unfinished, and of the rest what space has no place for.
func openCache(dir string, space *diskspace.Space) (*cache, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, diskError(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, diskError(err)
	}
	c := &cache{root: root, leases: map[entryKey]int{}, verified: map[entryKey]bool{}, rooms: newRooms(space)}
	names, err := c.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) {
			if err := root.RemoveAll(name); err != nil {
				return nil, diskError(err)
			}
		}
	}
	if err := c.adopt(names); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *cache) names() ([]string, error) {
	entries, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return nil, diskError(err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// lease is an entry in use: it stays on disk until it is released.
type lease struct {
	cache  *cache
	key    entryKey
	record record
	once   sync.Once

	// downloaded is how many bytes were downloaded for it.
	downloaded int64

	// provenance says that what was downloaded has a file of that kind besides.
	provenance bool

	// verdict is what ImagePolicies say of it under the reference that was asked for.
	verdict imagepolicy.Verdict

	// rule is what they demanded then.
	rule string
}

// release ends the use. It may be called more than once.
func (l *lease) release() {
	l.once.Do(func() {
		l.cache.mu.Lock()
		defer l.cache.mu.Unlock()
		l.cache.rooms.touch(l.key)
		if l.cache.leases[l.key]--; l.cache.leases[l.key] == 0 {
			delete(l.cache.leases, l.key)
		}
	})
}

// acquire returns the entry, or nil if there is none. An entry that an earlier
// process left is checked first, as the machine may have stopped before all of
// it was on disk, and discarded if it is damaged.
func (c *cache) acquire(ctx context.Context, key entryKey) (*lease, error) {
	unlock, err := c.entries.lock(ctx, key.dir())
	if err != nil {
		return nil, err
	}
	defer unlock()
	return c.acquireAlone(key)
}

func (c *cache) acquireAlone(key entryKey) (*lease, error) {
	c.mu.Lock()
	c.leases[key]++
	verified := c.verified[key]
	c.mu.Unlock()
	l := &lease{cache: c, key: key}
	rec, err := c.readRecord(key, !verified)
	if err == nil {
		l.record = rec
		c.mu.Lock()
		c.verified[key] = true
		c.mu.Unlock()
		return l, nil
	}
	l.release()
	if errors.Is(err, fs.ErrNotExist) && !c.exists(key) {
		return nil, nil
	}
	return nil, c.discard(key)
}

func (c *cache) exists(key entryKey) bool {
	_, err := c.root.Lstat(key.dir())
	return err == nil
}

// readRecord reads the record of an entry and, if asked to, checks the tree
// against it.
func (c *cache) readRecord(key entryKey, verify bool) (record, error) {
	data, err := c.root.ReadFile(path.Join(key.dir(), recordFile))
	if err != nil {
		return record{}, diskError(err)
	}
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return record{}, err
	}
	if rec.Digest != key.digest || rec.Selection != key.sel.String() || !fs.ValidPath(rec.Root) {
		return record{}, errors.New("record of another entry")
	}
	if !verify {
		return rec, nil
	}
	tree, err := fs.Sub(c.root.FS(), path.Join(key.dir(), treeDir))
	if err != nil {
		return record{}, err
	}
	got, err := digestTree(tree)
	if err != nil {
		return record{}, err
	}
	if got != rec.Tree {
		return record{}, errors.New("tree does not match its record")
	}
	return rec, nil
}

// filler writes the tree of an entry, asking for the bytes on disk of each part before,
// and returns its catalog root.
type filler func(tree *os.Root, take func(bytes int64) error) (string, error)

// create makes an entry. It appears whole or not at all, approved as given. Several may
// be at it at a time; the first that is done makes the entry of all. For want of space,
// entries that nobody uses make place, those first that nobody has used for longest; the
// error is a *diskspace.FullError if that is not enough.
func (c *cache) create(ctx context.Context, key entryKey, by approval, fill filler) (*lease, error) {
	temp := tempPrefix + rand.Text()
	room := c.rooms.space.Hold()
	rec, err := c.build(temp, key, by, func(tree *os.Root) (string, error) {
		if err := c.take(room, entryBytes); err != nil {
			return "", err
		}
		return fill(tree, func(bytes int64) error { return c.take(room, bytes) })
	})
	var held *lease
	if err == nil {
		var inPlace bool
		if held, inPlace, err = c.commit(ctx, temp, key, by, rec, room); inPlace {
			return held, nil
		}
	}
	// It failed, or another one was faster: what was written goes, and its room.
	if removeErr := c.root.RemoveAll(temp); removeErr != nil {
		if held != nil {
			held.release()
		}
		return nil, errors.Join(err, diskError(removeErr))
	}
	room.Release()
	return held, err
}

// commit puts an entry in place, with its room, or takes the one that is there.
func (c *cache) commit(
	ctx context.Context, temp string, key entryKey, by approval, rec record, room *diskspace.Holding,
) (held *lease, inPlace bool, err error) {
	unlock, err := c.entries.lock(ctx, key.dir())
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if held, err = c.acquireAlone(key); err != nil {
		return nil, false, err
	}
	if held != nil {
		if err := c.approve(key, by); err != nil {
			held.release()
			return nil, false, err
		}
		return held, false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.root.Rename(temp, key.dir()); err != nil {
		return nil, false, diskError(err)
	}
	c.verified[key] = true
	c.leases[key]++
	c.rooms.add(key, room)
	return &lease{cache: c, key: key, record: rec}, true, nil
}

func (c *cache) build(temp string, key entryKey, by approval, fill func(*os.Root) (string, error)) (record, error) {
	for _, dir := range []string{temp, path.Join(temp, treeDir), path.Join(temp, approvalsDir)} {
		if err := c.root.Mkdir(dir, dirMode); err != nil {
			return record{}, diskError(err)
		}
	}
	tree, err := c.root.OpenRoot(path.Join(temp, treeDir))
	if err != nil {
		return record{}, diskError(err)
	}
	defer tree.Close() //nolint:errcheck // a directory handle: nothing to flush
	rec := record{Digest: key.digest, Selection: key.sel.String()}
	if rec.Root, err = fill(tree); err != nil {
		return record{}, err
	}
	if rec.Tree, err = digestTree(tree.FS()); err != nil {
		return record{}, diskError(err)
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return record{}, fmt.Errorf("encoding cache record: %w", err)
	}
	if err := c.root.WriteFile(path.Join(temp, recordFile), data, fileMode); err != nil {
		return record{}, diskError(err)
	}
	return rec, c.writeApproval(path.Join(temp, approvalsDir), by)
}

// approval is a decision to accept an image: all that it follows from, as the name of a file,
// and what ImagePolicies have said, if there were any.
type approval struct {
	name    string
	verdict imagepolicy.Verdict
}

func (c *cache) writeApproval(dir string, by approval) error {
	var data []byte
	if len(by.verdict.Policies) > 0 {
		var err error
		if data, err = json.Marshal(by.verdict); err != nil {
			return fmt.Errorf("encoding a verdict: %w", err)
		}
	}
	return diskError(c.root.WriteFile(path.Join(dir, by.name), data, fileMode))
}

// approved reports whether the entry was accepted by the decision of that name before, and what
// ImagePolicies said then.
func (c *cache) approved(key entryKey, name string) (verdict imagepolicy.Verdict, ok bool) {
	data, err := c.root.ReadFile(path.Join(key.dir(), approvalsDir, name))
	if err != nil {
		return imagepolicy.Verdict{}, false
	}
	if len(data) > 0 && json.Unmarshal(data, &verdict) != nil {
		return imagepolicy.Verdict{}, false
	}
	return verdict, true
}

// approve notes that the entry, which is in use, was accepted by that decision. The
// oldest of too many goes.
func (c *cache) approve(key entryKey, by approval) error {
	dir := path.Join(key.dir(), approvalsDir)
	if err := c.writeApproval(dir, by); err != nil {
		return err
	}
	entries, err := fs.ReadDir(c.root.FS(), dir)
	if err != nil {
		return diskError(err)
	}
	var approvals []fs.FileInfo
	for _, entry := range entries {
		// Others may be at it at the same time.
		info, err := entry.Info()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return diskError(err)
		}
		if err == nil {
			approvals = append(approvals, info)
		}
	}
	slices.SortStableFunc(approvals, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range approvals[min(maxApprovals, len(approvals)):] {
		if err := c.root.Remove(path.Join(dir, old.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return diskError(err)
		}
	}
	return nil
}

// discard removes an entry, unless it is in use. It is gone at once; a kill
// meanwhile leaves a temporary directory.
func (c *cache) discard(key entryKey) error {
	trash := tempPrefix + rand.Text()
	c.mu.Lock()
	if c.leases[key] > 0 {
		c.mu.Unlock()
		return nil
	}
	delete(c.verified, key)
	err := c.root.Rename(key.dir(), trash)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.mu.Unlock()
		return diskError(err)
	}
	room := c.rooms.remove(key)
	c.mu.Unlock()
	if err := c.root.RemoveAll(trash); err != nil {
		return diskError(err)
	}
	if room != nil {
		room.Release()
	}
	return nil
}

// sweep discards the entries whose digest nobody keeps, but for those in use.
func (c *cache) sweep(keep func(digest.Digest) bool) (inUse bool, err error) {
	var unused []entryKey
	c.mu.Lock()
	for key := range c.rooms.held {
		switch {
		case keep(key.digest):
		case c.leases[key] > 0:
			inUse = true
		default:
			unused = append(unused, key)
		}
	}
	c.mu.Unlock()
	var failed []error
	for _, key := range unused {
		failed = append(failed, c.discard(key))
	}
	return inUse, errors.Join(failed...)
}
