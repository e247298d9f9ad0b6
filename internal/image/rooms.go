package image

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"time"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// rooms are what the entries of a cache take on disk, and when they were used last.
// It is guarded by the lock of the cache.
type rooms struct {
	space *diskspace.Space
	held  map[entryKey]*diskspace.Holding
	// used has a number that grows with each use.
	used map[entryKey]int
	last int
}

// newRooms takes nil for space without bound.
func newRooms(space *diskspace.Space) rooms {
	if space == nil {
		space = diskspace.New(diskspace.Config{Bytes: math.MaxInt64})
	}
	return rooms{space: space, held: map[entryKey]*diskspace.Holding{}, used: map[entryKey]int{}}
}

func (r *rooms) add(key entryKey, room *diskspace.Holding) {
	r.held[key] = room
	r.touch(key)
}

// touch notes that the entry, if there is one, was used.
func (r *rooms) touch(key entryKey) {
	if r.held[key] != nil {
		r.last++
		r.used[key] = r.last
	}
}

// remove returns what the entry took, for who deletes it; nil if there was none.
func (r *rooms) remove(key entryKey) *diskspace.Holding {
	room := r.held[key]
	delete(r.held, key)
	delete(r.used, key)
	return room
}

// idle returns the entry that nobody has used for longest, among those that nobody
// uses.
func (r *rooms) idle(leases map[entryKey]int) (entryKey, bool) {
	unused := slices.DeleteFunc(slices.Collect(maps.Keys(r.held)), func(key entryKey) bool { return leases[key] > 0 })
	if len(unused) == 0 {
		return entryKey{}, false
	}
	return slices.MinFunc(unused, func(a, b entryKey) int { return cmp.Compare(r.used[a], r.used[b]) }), true
}

// approvalsBytes is what the decisions to accept an entry may take, and entryBytes what
// an entry takes beside the files in its tree: three directories, its record and these.
var (
	approvalsBytes = maxApprovals * diskspace.Blocks(0)
	entryBytes     = 4*diskspace.Blocks(0) + approvalsBytes
)

// take adds to what an entry takes that is being made.
func (c *cache) take(room *diskspace.Holding, bytes int64) error {
	for {
		err := room.Take(bytes)
		if err == nil || !c.evict() {
			return err
		}
	}
}

// evict discards an entry that nobody uses, if there is one.
func (c *cache) evict() bool {
	c.mu.Lock()
	key, found := c.rooms.idle(c.leases)
	c.mu.Unlock()
	return found && c.discard(key) == nil
}

// adopt counts what an earlier process left. What was used last is not known: it is
// taken for what was made last.
func (c *cache) adopt(names []string) error {
	type found struct {
		key  entryKey
		made time.Time
	}
	var entries []found
	for _, name := range names {
		key, ok := parseEntryDir(name)
		if !ok {
			continue
		}
		info, err := c.root.Lstat(name)
		if err != nil {
			return diskError(err)
		}
		entries = append(entries, found{key: key, made: info.ModTime()})
	}
	slices.SortStableFunc(entries, func(a, b found) int { return a.made.Compare(b.made) })
	for _, entry := range entries {
		size, err := c.sizeOnDisk(entry.key.dir())
		if err != nil {
			return diskError(err)
		}
		room := c.rooms.space.Hold()
		room.Adopt(size + approvalsBytes)
		c.rooms.add(entry.key, room)
	}
	for c.rooms.space.Full() && c.evict() {
	}
	return nil
}

// sizeOnDisk is what an entry takes without its approvals.
func (c *cache) sizeOnDisk(dir string) (int64, error) {
	var size int64
	approvals := path.Join(dir, approvalsDir)
	err := fs.WalkDir(c.root.FS(), path.Clean(dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			size += diskspace.Blocks(info.Size())
			return nil
		}
		size += diskspace.Blocks(0)
		if name == approvals {
			return fs.SkipDir
		}
		return nil
	})
	return size, err
}
